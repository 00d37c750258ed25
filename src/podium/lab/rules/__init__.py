"""What is refused, by kind, with a `FieldError` for each field that is wrong."""
