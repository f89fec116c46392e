"""Several processes that train one run: what they compute together, and how they are started and stopped."""
