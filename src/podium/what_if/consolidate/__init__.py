"""Which nodes can be emptied, and which requests can be smaller."""
