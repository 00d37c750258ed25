"""The controllers of the lab: they create, run, evict and delete pods and what pods need."""
