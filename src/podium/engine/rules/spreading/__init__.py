"""Rules that spread pods over nodes and topology domains."""
