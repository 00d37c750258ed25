"""What is left when a zone, a rack or a node is lost."""
