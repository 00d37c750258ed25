"""What would happen to a cluster: plan, survive, consolidate, check, capacity, fix, compare."""
