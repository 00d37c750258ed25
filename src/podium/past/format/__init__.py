"""The files of a history."""
