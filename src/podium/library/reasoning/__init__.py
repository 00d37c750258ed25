"""What led to a decision, found after it is made: causes of reasons, and its steps in order."""
