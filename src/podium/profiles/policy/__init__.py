"""A provider name or a Policy file (v1.13) becomes a profile of the engine."""
