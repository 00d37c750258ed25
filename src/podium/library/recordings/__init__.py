"""Recordings of decisions: read, replayed and compared, and made of Podium's own decisions."""
