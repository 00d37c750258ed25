"""Worlds to start with: a small cluster that shows something, many nodes, files, a snapshot."""
