"""Disks and claims that pods cannot share."""
