"""What the API server refuses, by kind, with a `FieldError` for each wrong field."""
