"""Rules on resources: whether the requests fit, and how full the node would be."""
