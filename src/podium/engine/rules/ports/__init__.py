"""Rules on host ports."""
