"""How entities and relations are embedded, and how embeddings are learned, said without torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgewise.config.model import Config


class EmbeddingConfig(Config):
    """A model of knowledge graph embeddings."""

    model: Literal["complex", "distmult", "rotate", "transe"] = "complex"
    """ComplEx, DistMult, RotatE or TransE."""
    dim: int = Field(100, ge=1)
    """Numbers per entity; complex ones for ComplEx and RotatE."""
    reciprocal: bool = True
    """Whether a predicate has a second embedding, for questions about heads."""
    norm: Literal["moduli", "euclidean", "manhattan"] = "moduli"
    """How RotatE and TransE measure distance: RotatE by the sum of moduli or over all components at once,
    TransE by the euclidean or the manhattan norm, for which `moduli` stands too."""
    margin: float = Field(9.0, ge=0)
    """What RotatE and TransE score at distance 0."""


class KGEConfig(Config):
    """A model of embeddings and how it is trained."""

    embedding: EmbeddingConfig = EmbeddingConfig()
    """The model."""
    loss: Literal["one_vs_all", "shared_negatives", "self_adversarial"] = "one_vs_all"
    """Softmax over all entities, softmax over entities drawn for the whole batch, or the logistic loss of
    RotatE, with negatives weighted by their own scores."""
    negatives: int = Field(1024, ge=1)
    """Entities drawn for a batch, where not all are scored."""
    adversarial_temperature: float = Field(1.0, ge=0)
    """How much harder negatives weigh more in the self-adversarial loss; 0 weighs all alike."""
    n3: float = Field(0.0, ge=0)
    """Weight of the cubed moduli of the embeddings in use."""
    optimiser: Literal["adagrad", "adam"] = "adagrad"
    """Adagrad or Adam."""
    learning_rate: float = Field(0.1, gt=0)
    """Its step size."""
    decay: Literal["none", "linear"] = "none"
    """Whether the step size falls to zero over the epochs."""
    batch_size: int = Field(512, ge=1)
    """Questions in one update; with reciprocal predicates each atom asks two."""
    epochs: int = Field(30, ge=1)
    """Passes over the training atoms."""
    init_scale: float = Field(1e-3, gt=0)
    """Deviation of ComplEx and DistMult embeddings before training."""
    evaluate_every: int = Field(0, ge=0)
    """Epochs between measurements on the validation atoms; 0 for none."""
    save_every: int = Field(5, ge=1)
    """Epochs between checkpoints."""
    seed: int = Field(0, ge=0, lt=2**63)
    """What everything random follows from."""
