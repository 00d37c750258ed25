"""Answers laid out for terminals and pages."""
