"""The scheduler extender protocol: the client of extenders, and an extender of its own."""
