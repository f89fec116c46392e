"""Verbs of the queueing system."""
