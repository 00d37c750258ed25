"""Answers kept between decisions, so that only what changed is computed again."""
