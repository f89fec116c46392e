"""Multi-class multi-hop networks: which class each link carries in each slot."""
