"""Histories: files with what scheduling read of a cluster over time, and what it decided.

A history is written by `writing.HistoryWriter` and read by `reading.History`. Both know files and
records only: who records, and what is derived from a history, is elsewhere.
"""
