"""Objects as rows of a `Table`, which `kubectl get` prints."""
