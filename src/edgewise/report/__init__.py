"""The report of a run: one HTML page, built from its folder alone."""
