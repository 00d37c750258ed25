"""The scheduling framework: the contract of a rule, the profile, and the decision."""
