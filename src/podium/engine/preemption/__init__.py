"""Preemption: which pods to evict so that a pending pod fits, for both generations."""
