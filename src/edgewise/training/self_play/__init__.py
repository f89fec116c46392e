"""Self-play collection against the current policy and a pool of its snapshots."""
