"""Rules that keep the pods of a service together or apart by node labels."""
