"""Kubernetes' REST API over HTTP: requests, verbs, lists, watches, answers, security."""
