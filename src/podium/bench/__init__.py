"""Scheduling workloads, run in memory and measured."""
