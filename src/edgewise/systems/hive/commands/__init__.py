"""Verbs of the hive system."""
