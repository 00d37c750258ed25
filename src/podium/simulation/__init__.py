"""A cluster in one process on virtual time: the real scheduler and the lab's API server."""
