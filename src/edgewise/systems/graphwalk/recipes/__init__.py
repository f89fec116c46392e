"""Recipes of the graphwalk system: presets that reproduce a published figure."""
