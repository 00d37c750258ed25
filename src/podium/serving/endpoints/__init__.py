"""HTTP servers with limits, and the endpoints of a scheduler."""
