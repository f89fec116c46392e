"""Recipes of the reasoning system: presets that reproduce a published figure."""
