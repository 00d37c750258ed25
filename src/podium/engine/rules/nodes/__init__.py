"""Rules on the node alone: its name, conditions, labels and features."""
