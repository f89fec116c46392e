"""Settings of knowledge graph embeddings and their training. Never imports torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgewise.config.bounds import FRAMES, REAL, ROWS, WIDTH
from edgewise.config.model import Config


class EmbeddingConfig(Config):
    """Settings of a knowledge graph embedding model."""

    model: Literal["complex", "distmult"] = "complex"
    """ComplEx or DistMult."""
    dim: int = Field(100, ge=1, le=WIDTH)
    """Dimensions per entity; they are complex for ComplEx."""
    reciprocal: bool = True
    """Whether each predicate has a second embedding, for queries about the head."""


class KGEConfig(Config):
    """Settings of an embedding model and its training."""

    embedding: EmbeddingConfig = EmbeddingConfig()
    """Settings of the model."""
    loss: Literal["one_vs_all", "shared_negatives"] = "one_vs_all"
    """Softmax over all entities, or over entities sampled for the whole batch."""
    negatives: int = Field(1024, ge=1, le=ROWS)
    """Entities sampled per batch, if not all are scored."""
    n3: float = Field(0.0, ge=0, le=REAL)
    """Weight of the N3 regularisation: the cubed moduli of the embeddings of the batch."""
    dura: float = Field(0.0, ge=0, le=REAL)
    """Weight of the DURA regularisation: the squared moduli of entities, and of their products with the
    relation."""
    optimiser: Literal["adagrad", "adam"] = "adagrad"
    """Adagrad or Adam."""
    learning_rate: float = Field(0.1, gt=0, le=REAL)
    """Learning rate."""
    decay: Literal["none", "linear"] = "none"
    """Whether the learning rate decays linearly to zero over the epochs."""
    batch_size: int = Field(512, ge=1, le=ROWS)
    """Queries per minibatch; with reciprocal predicates each atom gives two."""
    epochs: int = Field(30, ge=1, le=ROWS)
    """Passes over the training atoms."""
    init_scale: float = Field(1e-3, gt=0, le=REAL)
    """Standard deviation of the embeddings at initialisation."""
    evaluate_every: int = Field(0, ge=0, le=FRAMES)
    """Epochs between evaluations on the validation atoms; 0 for none."""
    save_every: int = Field(5, ge=1, le=FRAMES)
    """Epochs between checkpoints."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Random seed."""
