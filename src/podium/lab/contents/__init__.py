"""The objects a lab starts with: the demo cluster, generated nodes, files or a snapshot."""
