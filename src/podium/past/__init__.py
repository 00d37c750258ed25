"""What happened in a cluster: recorded, decided again, judged."""
