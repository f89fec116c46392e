"""Graphs inside TensorDicts: their spec, their edges, their actions, and the union that PyG takes."""
