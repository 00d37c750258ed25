"""The recent decisions of a running scheduler: in memory within a limit, or in a file."""
