"""The published InforMARL network."""
