"""Decisions written as recordings, and the report that compares them."""
