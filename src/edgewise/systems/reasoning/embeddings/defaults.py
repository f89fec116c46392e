"""Default settings of embeddings by model and size of the data."""

from __future__ import annotations

from edgewise.systems.reasoning.embeddings.config import EmbeddingConfig, KGEConfig

LARGE = 5000
"""Number of entities from which losses use sampled negatives instead of all entities."""


def default_config(model: str, *, num_entities: int) -> KGEConfig:
    """Return the default settings of a model for a number of entities."""
    if num_entities < LARGE:
        embedding = EmbeddingConfig.from_plain({"model": model, "dim": 100})
        return KGEConfig(embedding=embedding, n3=0.01, batch_size=512, epochs=30)
    return KGEConfig(
        embedding=EmbeddingConfig.from_plain({"model": model, "dim": 400}),
        loss="shared_negatives",
        negatives=512,
        dura=0.1,
        decay="linear",
        batch_size=256,
        epochs=20,
        save_every=3,
    )
