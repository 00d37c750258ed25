"""Just enough controllers: what makes, runs, moves and removes pods in the lab."""
