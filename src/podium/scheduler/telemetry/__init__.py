"""Logs, metrics, timings and spans of a scheduler."""
