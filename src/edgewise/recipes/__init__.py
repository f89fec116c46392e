"""The composition root: one file is one reproducible result."""
