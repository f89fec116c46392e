"""The base of graph environments, its contract, and parts that several environments share."""
