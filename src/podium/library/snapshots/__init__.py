"""Snapshots of a cluster: listed from its API server, written to a file, profile included."""
