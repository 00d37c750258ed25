"""Recent decisions of a running scheduler, kept in memory within a budget, or written to a file."""
