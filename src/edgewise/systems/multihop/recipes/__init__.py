"""Recipes of the multihop system: presets that reproduce a published figure."""
