"""Hex: two players join their sides of a rhombus of hexagons. The card is README.md."""
