"""Default settings of embeddings by model and size of the data."""

from __future__ import annotations

from typing import Any

from edgewise.systems.reasoning.embeddings.config import EmbeddingConfig, KGEConfig

LARGE = 5000
"""Number of entities from which losses use sampled negatives instead of all entities."""


def default_config(model: str, *, num_entities: int) -> KGEConfig:
    """Return the default settings of a model for a number of entities."""
    if model in ("complex", "distmult"):
        return _bilinear(model, large=num_entities >= LARGE)
    return _distance(model, large=num_entities >= LARGE)


def _bilinear(model: str, *, large: bool) -> KGEConfig:
    if not large:
        return KGEConfig(embedding=_embedding(model=model, dim=100), n3=0.01, batch_size=512, epochs=30)
    return KGEConfig(
        embedding=_embedding(model=model, dim=200),
        loss="shared_negatives",
        negatives=512,
        n3=0.1,
        decay="linear",
        batch_size=512,
        epochs=18,
        save_every=3,
    )


def _distance(model: str, *, large: bool) -> KGEConfig:
    return KGEConfig(
        embedding=_embedding(model=model, dim=100, norm="euclidean"),
        loss="shared_negatives" if large else "one_vs_all",
        negatives=512,
        optimiser="adam",
        learning_rate=0.01 if large else 0.03,
        decay="linear",
        batch_size=512,
        epochs=20 if large else 60,
    )


def _embedding(**values: Any) -> EmbeddingConfig:
    return EmbeddingConfig.from_plain(values)
