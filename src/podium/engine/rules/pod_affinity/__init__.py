"""Rules on affinity and anti-affinity between pods."""
