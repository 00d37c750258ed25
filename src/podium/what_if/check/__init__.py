"""Manifests read strictly, then applied to a copy of a cluster."""
