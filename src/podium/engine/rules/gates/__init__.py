"""Rules that hold a pod back before it is scheduled."""
