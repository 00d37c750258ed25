"""The Kubernetes objects that scheduling reads, as typed values: one module per group of kinds."""
