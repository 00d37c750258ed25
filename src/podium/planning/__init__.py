"""Questions about change: what if, what fits, what would help, which configuration is better."""
