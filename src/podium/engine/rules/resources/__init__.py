"""Rules on resources: whether the requests fit, and the utilization of the node."""
