"""The controller that binds persistent volume claims to volumes."""
