"""Workers that collect and evaluate for a run: what they are sent, what they do, how they are replaced."""
