"""Talking to an API server: credentials, verbs, lists and watches."""
