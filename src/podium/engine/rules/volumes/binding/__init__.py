"""Whether the claims of a pod can be served from a node."""
