"""The data of the web pages, read from a running scheduler: map, queue, decisions, what-if."""
