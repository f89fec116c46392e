"""Two-player evaluation: paired matches, ratings, and the gate for new snapshots."""
