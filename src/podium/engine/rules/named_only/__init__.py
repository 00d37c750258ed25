"""Plugins that a configuration may name and that have no rule."""
