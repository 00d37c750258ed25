"""The REST API over HTTP: requests, verbs, lists, watches, responses, discovery, security."""
