"""Networks of the marine system."""
