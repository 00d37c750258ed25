"""The four types of patches: JSON, merge, strategic merge and server-side apply."""
