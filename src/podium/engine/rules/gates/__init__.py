"""The rule that keeps a pod with scheduling gates out of the queue."""
