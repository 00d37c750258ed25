"""Rules on devices requested by resource claims (dynamic resource allocation)."""
