"""Label, field, node and topology selectors: parsing, matching, adding, and their text."""
