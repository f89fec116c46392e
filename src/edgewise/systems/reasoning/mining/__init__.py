"""Mining of rules from the training atoms of a knowledge graph, with sparse matrix products."""
