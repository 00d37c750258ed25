"""What a recorder writes down while a scheduler runs."""
