"""Batched SLD resolution over a knowledge graph."""
