"""The columns and cells that `kubectl get` prints."""
