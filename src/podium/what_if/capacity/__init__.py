"""How much more fits."""
