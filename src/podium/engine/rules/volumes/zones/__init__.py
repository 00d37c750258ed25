"""Volumes that are used only in their zones."""
