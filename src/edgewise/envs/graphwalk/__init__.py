"""Graphwalk: reach the marked node of a random graph. The example environment; its card is README.md."""
