"""The types of the API: field types, typed bodies, canonical quantities."""
