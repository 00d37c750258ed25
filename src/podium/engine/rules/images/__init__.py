"""Rules on container images already present on a node."""
