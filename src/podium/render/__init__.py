"""Decisions for people and programs: tables, pages, JSON. Only here are things put into words."""
