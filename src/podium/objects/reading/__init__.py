"""Text to objects: JSON, YAML and `kubectl get` output, decoded, checked and collected."""
