"""A cluster in one process on virtual time: API server, controllers, schedulers."""
