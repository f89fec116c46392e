"""Recipes of the queueing system: presets that reproduce a published figure."""
