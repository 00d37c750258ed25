"""The adapter that runs rules written by users on the contracts of the engine."""
