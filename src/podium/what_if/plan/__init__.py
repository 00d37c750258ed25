"""Changes to a copy of a cluster on virtual time, and what follows."""
