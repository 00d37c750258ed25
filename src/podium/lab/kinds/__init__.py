"""The kinds that the lab serves: defaults, validation, table and status of each in one file."""
