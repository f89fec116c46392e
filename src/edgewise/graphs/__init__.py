"""What a graph is inside a TensorDict: its spec, its edges, and the bridge to one disjoint union and back."""
