"""Graph encoders: from a batch of graphs to node embeddings."""
