"""The commands `podium bench`, `podium sweep` and `podium history import`."""
