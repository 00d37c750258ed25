"""The cluster as the engine reads it: nodes, pods, and the objects that rules look up."""
