"""Recipes of the swarm system: presets that reproduce a published figure."""
