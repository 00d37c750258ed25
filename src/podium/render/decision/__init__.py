"""Decisions as tables, sentences, JSON and HTML."""
