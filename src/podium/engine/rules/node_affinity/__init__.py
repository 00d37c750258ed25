"""Rules on node selectors and node affinity."""
