"""Predicates and priorities written by users: loading them, timing them."""
