"""What a lab starts with: a demo, generated nodes, or objects from files and snapshots."""
