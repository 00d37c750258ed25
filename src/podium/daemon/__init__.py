"""The scheduler of a real cluster: watch, decide, bind, and tell about it."""
