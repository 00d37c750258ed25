"""Kubernetes objects as values: decoding, checking, quantities, selectors, taints. No I/O."""
