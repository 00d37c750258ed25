"""What users configure (a provider, a Policy file, flags) made into an engine profile."""
