"""Checkpoints: tensors as safetensors, a JSON manifest with SHA-256, atomic writes."""
