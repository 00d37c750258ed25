"""The latest decisions of a running scheduler, in memory and in files."""
