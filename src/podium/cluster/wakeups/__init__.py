"""Which cluster event moves which pod back to the active queue."""
