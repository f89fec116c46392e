"""Settings of knowledge graph embeddings and their training. Never imports torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgewise.config.model import Config


class EmbeddingConfig(Config):
    """Settings of a knowledge graph embedding model."""

    model: Literal["complex", "distmult", "rotate", "transe"] = "complex"
    """ComplEx, DistMult, RotatE or TransE."""
    dim: int = Field(100, ge=1)
    """Dimensions per entity; they are complex for ComplEx and RotatE."""
    reciprocal: bool = True
    """Whether each predicate has a second embedding, for queries about the head."""
    norm: Literal["moduli", "euclidean", "manhattan"] = "moduli"
    """Distance of RotatE and TransE. RotatE: `moduli` sums the moduli, `euclidean` is over all components.
    TransE: `manhattan` (also `moduli`) or `euclidean`."""
    margin: float = Field(9.0, ge=0)
    """Score of RotatE and TransE at distance 0."""


class KGEConfig(Config):
    """Settings of an embedding model and its training."""

    embedding: EmbeddingConfig = EmbeddingConfig()
    """Settings of the model."""
    loss: Literal["one_vs_all", "shared_negatives", "self_adversarial"] = "one_vs_all"
    """Softmax over all entities, softmax over entities sampled for the whole batch, or the self-adversarial
    logistic loss of RotatE."""
    negatives: int = Field(1024, ge=1)
    """Entities sampled per batch, if not all are scored."""
    adversarial_temperature: float = Field(1.0, ge=0)
    """Temperature of the weights of negatives in the self-adversarial loss; 0 weighs them equally."""
    n3: float = Field(0.0, ge=0)
    """Weight of the N3 regularisation: the cubed moduli of the embeddings of the batch."""
    optimiser: Literal["adagrad", "adam"] = "adagrad"
    """Adagrad or Adam."""
    learning_rate: float = Field(0.1, gt=0)
    """Learning rate."""
    decay: Literal["none", "linear"] = "none"
    """Whether the learning rate decays linearly to zero over the epochs."""
    batch_size: int = Field(512, ge=1)
    """Queries per minibatch; with reciprocal predicates each atom gives two."""
    epochs: int = Field(30, ge=1)
    """Passes over the training atoms."""
    init_scale: float = Field(1e-3, gt=0)
    """Standard deviation of ComplEx and DistMult embeddings at initialisation."""
    evaluate_every: int = Field(0, ge=0)
    """Epochs between evaluations on the validation atoms; 0 for none."""
    save_every: int = Field(5, ge=1)
    """Epochs between checkpoints."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Random seed."""
