"""The operations of the API server on objects: create, update, patch, delete, bind, evict."""
