"""Rules on taints and tolerations."""
