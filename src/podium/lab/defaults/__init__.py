"""Default values that the API server sets in objects, by kind, and the status of new objects."""
