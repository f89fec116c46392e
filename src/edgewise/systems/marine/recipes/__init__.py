"""Recipes of the marine system: presets that reproduce a published figure."""
