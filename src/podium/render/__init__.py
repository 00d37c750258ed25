"""Decisions and profiles for people and programs: tables, sentences, pages, JSON."""
