"""Predicates and priorities written by users: made to fit, loaded, timed."""
