"""The results of planning as values, as JSON and as lines of text."""
