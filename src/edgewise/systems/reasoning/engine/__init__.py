"""SLD resolution over a knowledge graph, batched."""
