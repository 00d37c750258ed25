"""The priorities, one idea per module."""
