"""Recipes of the hive system."""
