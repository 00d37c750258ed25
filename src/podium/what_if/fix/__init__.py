"""What would make a pod fit."""
