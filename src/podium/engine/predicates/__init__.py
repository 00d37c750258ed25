"""The predicates, one idea per module."""
