"""Knowledge-graph embeddings (KGE): models, losses, training and filtered ranking.

A question is an atom without its tail, (head, predicate, ?), or without its head, (?, predicate, tail).
"""
