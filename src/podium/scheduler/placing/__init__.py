"""From a decision to a bound pod, or to a pod that waits again."""
