"""Encoders of graphs, heads that act on them, and the actor-critics they make."""
