"""What we believe about the cluster: columns, cache, node order, waiting pods."""
