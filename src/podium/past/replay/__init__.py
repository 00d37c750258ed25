"""A history followed again: its decisions, its cluster at any moment, other rules."""
