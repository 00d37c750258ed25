"""Profiles and configurations as tables."""
