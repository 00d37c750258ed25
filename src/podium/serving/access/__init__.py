"""Certificates, tokens and rights of those who send requests."""
