"""Boats that cross a current to their goals without touching, by the rules of the sea."""
