"""Rules on the number of volumes attached to a node."""
