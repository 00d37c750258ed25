"""Decisions in the form of recordings, and the report that compares them."""
