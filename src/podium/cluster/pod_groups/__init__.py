"""Pod groups: the cycle of a group, its trial of evictions, and what is written of it."""
