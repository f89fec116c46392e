"""One page that tells a run's story, read from its folder alone."""
