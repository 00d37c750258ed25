"""What a scheduler serves: HTTP endpoints, the access to them, and the data of the pages."""
