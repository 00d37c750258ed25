"""Traces: nodes, and pods that arrive and leave, read from the files of several publishers."""
