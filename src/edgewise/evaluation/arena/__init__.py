"""Two-player evaluation: paired matches, ratings, ordering and the gate for new snapshots."""
