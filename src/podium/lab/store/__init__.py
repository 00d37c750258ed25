"""Where the lab keeps objects: in memory with a history for watches, and in SQLite."""
