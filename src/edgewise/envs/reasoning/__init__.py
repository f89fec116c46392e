"""Reasoning: prove a query of a knowledge graph by resolution, step by step; its card is README.md."""
