"""Commands and evaluation modes of the reasoning system."""
