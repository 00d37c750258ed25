"""The types of the API: fields and their types, merge keys, typed bodies, canonical quantities."""
