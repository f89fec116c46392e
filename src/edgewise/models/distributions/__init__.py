"""Action distributions with exact log-probabilities under masks."""
