"""Rules on volumes: conflicts, limits, zones and the binding of claims."""
