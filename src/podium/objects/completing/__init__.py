"""What the API server and the controllers add to manifests: defaults, pods of workloads."""
