"""Programs around a scheduler: `podium run` and `podium lab` wire it with the same host."""
