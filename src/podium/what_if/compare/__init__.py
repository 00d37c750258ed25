"""Which configuration packs better, and how few nodes would do."""
