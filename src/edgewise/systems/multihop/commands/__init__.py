"""The verbs of the multihop system."""
