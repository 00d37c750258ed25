"""What a snapshot keeps of an object, and how names in it are replaced."""
