"""Rules on the zones of volumes."""
