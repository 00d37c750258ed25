"""The state of the cluster: nodes and pods in columns, the cache, and the scheduling queue."""
