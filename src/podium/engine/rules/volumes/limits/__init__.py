"""How many volumes a node takes."""
