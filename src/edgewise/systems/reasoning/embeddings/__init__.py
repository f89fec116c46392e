"""Knowledge-graph embeddings (KGE): models, losses, training and filtered ranking."""
