"""Recipes of the re-entrant system: presets that reproduce a published figure."""
