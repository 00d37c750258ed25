"""Validation of objects by kind: an iterator of `FieldError`, one for each invalid field."""
