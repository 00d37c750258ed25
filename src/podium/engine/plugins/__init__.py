"""The rules of the plugins generation: one plugin per module, its filter and its score together."""
