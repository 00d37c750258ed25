"""What a scheduler writes to a history, and what follows from one: replays and judgements."""
