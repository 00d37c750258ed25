"""Answers about change: how much more fits, what makes a pod fit, which profile packs better."""
