"""The scheduler cache: nodes, placed and assumed pods, and the order of nodes."""
