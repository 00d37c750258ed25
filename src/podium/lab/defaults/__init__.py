"""What the API server fills in when a field was left out, by kind."""
