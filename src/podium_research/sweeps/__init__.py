"""Sweeps: workloads, configurations and seeds, each combination run once, and one table of all."""
