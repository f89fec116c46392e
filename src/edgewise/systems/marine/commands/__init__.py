"""Verbs of the marine system."""
