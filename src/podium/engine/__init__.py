"""The pure core: (pod, view, profile) -> Decision."""
