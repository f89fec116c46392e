"""Recipes of the hex system: presets that reproduce a published figure."""
