"""What the API server does at every write: names, metadata, admission, deletion, binding."""
