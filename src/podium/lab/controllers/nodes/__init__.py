"""Controllers of nodes, and the fake kubelet that reports on pods instead of running them."""
