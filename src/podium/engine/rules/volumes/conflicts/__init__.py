"""Rules on disks and claims that pods cannot share."""
