"""Encoders of graphs, policy heads and actor-critics."""
