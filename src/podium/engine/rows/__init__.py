"""Rows as rules read them: many as arrays, one as plain numbers, with or without trial changes."""
