"""Knowledge-graph embeddings that score single atoms, or all heads or tails of a question at once.

The tables are those of `torch_geometric.nn.kge`. Scores of all entities are one matrix product. Public
methods take the ids of a `Vocabulary`, which start at 1.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.kge import ComplEx, DistMult, KGEModel

from edgewise.systems.reasoning.embeddings import geometry
from edgewise.systems.reasoning.embeddings.config import EmbeddingConfig

Side = Literal["head", "tail"]
TABLES: dict[str, type[KGEModel]] = {"complex": ComplEx, "distmult": DistMult}


class KnowledgeEmbedding(nn.Module):
    """Embedding model of entities and predicates; higher scores mean more plausible atoms.

    Args:
        config: the model and its size.
        num_entities: E of the vocabulary.
        num_predicates: P of the vocabulary.
        sparse: whether gradients are sparse, for large tables.

    Example:
        >>> model = KnowledgeEmbedding(EmbeddingConfig(dim=4), num_entities=5, num_predicates=2)
        >>> model.score(torch.tensor([[1, 5, 3], [2, 1, 1]])).shape
        torch.Size([2])
        >>> model.score_tails(torch.tensor([5]), torch.tensor([1])).shape
        torch.Size([1, 5])
    """

    def __init__(
        self, config: EmbeddingConfig, *, num_entities: int, num_predicates: int, sparse: bool = False
    ) -> None:
        super().__init__()
        self.config = config
        self.num_entities, self.num_predicates = num_entities, num_predicates
        relations = num_predicates * (2 if config.reciprocal else 1)
        with torch.random.fork_rng(devices=[]):
            self.tables = TABLES[config.model](num_entities, relations, config.dim, sparse=sparse)

    def initialise(self, scale: float, generator: torch.Generator) -> None:
        """Initialise all embeddings by normal variates of standard deviation `scale`."""
        with torch.no_grad():
            for table in self.tables.parameters():
                table.normal_(0, scale, generator=generator)

    def score(self, atoms: Tensor, *, side: Side | None = None) -> Tensor:
        """Score atoms `[n, 3]` (predicate, head, tail) → `[n]`.

        Args:
            atoms: ids of predicates of the data and of entities.
            side: the missing argument of the question. With reciprocal predicates the two questions have
                different scores, and the default is their mean. Without, it makes no difference.
        """
        predicate, head, tail = (atoms - 1).unbind(-1)
        if side is None and self.config.reciprocal:
            return (self.score(atoms, side="tail") + self.score(atoms, side="head")) / 2
        if side == "head":
            return self.compare_rows(self.head_questions(predicate, tail), self.entity_vectors(head))
        return self.compare_rows(self.tail_questions(head, predicate), self.entity_vectors(tail))

    def log_probability(self, atoms: Tensor, *, side: Side | None = None) -> Tensor:
        """Compute log σ of the scores of atoms `[n, 3]` → `[n]`."""
        return F.logsigmoid(self.score(atoms, side=side))

    def score_tails(self, heads: Tensor, predicates: Tensor) -> Tensor:
        """Score every entity as tail, `[m]` and `[m]` → `[m, E]`; column e − 1 is entity e."""
        return self.compare(self.tail_questions(heads - 1, predicates - 1), self.entity_vectors())

    def score_heads(self, predicates: Tensor, tails: Tensor) -> Tensor:
        """Score every entity as head, `[m]` and `[m]` → `[m, E]`; column e − 1 is entity e."""
        return self.compare(self.head_questions(predicates - 1, tails - 1), self.entity_vectors())

    def entity_vectors(self, rows: Tensor | None = None) -> Tensor:
        """Return vectors `[*, D]` of entities by row, id − 1; all if no rows are given."""
        parts = [self.tables.node_emb]
        if self.config.model == "complex":
            parts.append(self.tables.node_emb_im)
        return torch.cat([part.weight if rows is None else part(rows) for part in parts], -1)

    def relation_vectors(self, rows: Tensor) -> Tensor:
        """Return vectors `[*, D]` of relations by row: predicates by id − 1, then their reciprocals."""
        found: Tensor = self.tables.rel_emb(rows)
        if self.config.model == "complex":
            return torch.cat([found, self.tables.rel_emb_im(rows)], -1)
        return found

    def tail_questions(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Return the vectors to compare tails with, `[*, D]`, for rows of heads and relations."""
        head, relation = self.entity_vectors(heads), self.relation_vectors(relations)
        return self.combine_for_tail(head, relation)

    def head_questions(self, relations: Tensor, tails: Tensor) -> Tensor:
        """Return the vectors to compare heads with, `[*, D]`, for rows of relations and tails."""
        if self.config.reciprocal:
            return self.tail_questions(tails, relations + self.num_predicates)
        relation, tail = self.relation_vectors(relations), self.entity_vectors(tails)
        return self.combine_for_head(relation, tail)

    def combine_for_tail(self, head: Tensor, relation: Tensor) -> Tensor:
        """Combine vectors of a head and a relation into the vector of their question, `[*, D]`."""
        return head * relation if self.config.model == "distmult" else geometry.multiply(head, relation)

    def combine_for_head(self, relation: Tensor, tail: Tensor) -> Tensor:
        """Combine vectors of a relation and a tail into the vector of their question, `[*, D]`."""
        if self.config.model == "distmult":
            return relation * tail
        return geometry.multiply(geometry.conjugate(relation), tail)

    def compare(self, questions: Tensor, entities: Tensor) -> Tensor:
        """Score every pair, `[m, D]` and `[k, D]` → `[m, k]`."""
        return questions @ entities.T

    def compare_rows(self, questions: Tensor, entities: Tensor) -> Tensor:
        """Score rows, `[n, D]` and `[n, D]` → `[n]`."""
        return (questions * entities).sum(-1)
