"""Scheduling workloads that are run in memory and measured."""
