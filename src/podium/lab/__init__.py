"""A cluster in one process: an API server, just enough controllers, and worlds to start with."""
