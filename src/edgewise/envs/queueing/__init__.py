"""Conflict-graph scheduling: queues that may not be served together."""
