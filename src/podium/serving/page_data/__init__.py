"""The data of the pages, read from a running scheduler."""
