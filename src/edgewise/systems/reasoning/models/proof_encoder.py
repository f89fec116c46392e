"""Encoders of goals: message passing over atoms with shared terms, or a mean of embedding sums."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from edgewise.systems.reasoning.knowledge.placement import can_count
from edgewise.systems.reasoning.models.config import ProofConfig

HEAD, TAIL = 1, 2
"""Position of a term in the query; 0 for neither."""


@dataclass(frozen=True)
class Symbols:
    """Sizes of the embedding tables of a knowledge base.

    Args:
        predicates: number of predicate ids, special ones included.
        entities: number of entities; larger ids are variables.
        variables: maximum number of variables of a state.
        rules: number of rules.
    """

    predicates: int
    entities: int
    variables: int
    rules: int


class ProofGraph(nn.Module):
    """Encoder with message passing between the atoms of a state through the terms they share.

    A term is represented by its role in the proof (which variable, or the query's head or tail) and, if
    enabled, by an entity embedding. An atom is represented by its predicate, its terms, whether it is
    resolved next, and how many facts match it. Without entity embeddings the encoder generalises to unseen
    entities.

    Args:
        symbols: sizes of the tables.
        config: see `ProofConfig`.
    """

    def __init__(self, symbols: Symbols, config: ProofConfig) -> None:
        super().__init__()
        width, self.symbols, self.reads_matches = config.hidden, symbols, config.reads_matches
        self.predicate = nn.Embedding(symbols.predicates + 1, width, padding_idx=0)
        self.variable = nn.Embedding(symbols.variables + 1, width, padding_idx=0)
        self.place = nn.Embedding(3, width)
        entities = symbols.entities if config.entities else 0
        self.entity = nn.Embedding(entities + 1, width, padding_idx=0)
        nn.init.normal_(self.entity.weight, std=config.entity_scale)
        self.first = nn.Parameter(torch.zeros(width))
        self.matches = nn.Linear(2, width)
        self.start = nn.Linear(3 * width, width)
        self.to_terms = nn.ModuleList(nn.Linear(2 * width, 2 * width) for _ in range(config.rounds))
        self.to_atoms = nn.ModuleList(_block(3 * width, width) for _ in range(config.rounds))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(config.rounds))
        self.readout = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.LayerNorm(width))

    def forward(self, atoms: Tensor, query: Tensor, matches: Tensor | None = None) -> Tensor:
        """Encode states `atoms [N, A, 3]` in proofs of `query [N, 3]` to `[N, C]`.

        `matches [N, A]` is the number of facts that match each atom; it is given if the config has `counts`.
        """
        if self.reads_matches != (matches is not None):
            raise ValueError("counts of matching facts and the setting `counts` differ")
        exists = atoms[..., 0] > 0
        if can_count(atoms):
            used = int(exists.sum(-1).amax()) if len(atoms) else 1
            atoms, exists = atoms[:, : max(used, 1)], exists[:, : max(used, 1)]
            matches = None if matches is None else matches[:, : max(used, 1)]
        terms = atoms[..., 1:].flatten(1)
        slots = self._terms(terms, query)
        sharing = _sharing(terms)
        h = self._atoms(atoms, slots, matches)
        for message, update, norm in zip(self.to_terms, self.to_atoms, self.norms, strict=True):
            sent = message(torch.cat((h, self.predicate(atoms[..., 0])), -1))
            sent = sent.unflatten(-1, (2, -1)).flatten(1, 2)
            received = (sharing @ sent + slots).unflatten(1, (-1, 2)).flatten(2)
            h = norm(h + update(torch.cat((h, received), -1)))
        h = h.masked_fill(~exists.unsqueeze(-1), 0.0)
        mean = h.sum(1) / exists.sum(1, keepdim=True).clamp(min=1)
        return self.readout(torch.cat((h[:, 0], mean), -1))

    def _terms(self, terms: Tensor, query: Tensor) -> Tensor:
        """Embed the role of each argument in its proof, `[N, 2A, C]`."""
        number = (terms - self.symbols.entities).clamp(min=0, max=self.symbols.variables)
        place = torch.where(terms == query[:, 1:2], HEAD, torch.where(terms == query[:, 2:3], TAIL, 0))
        slots = self.variable(number) + self.place(place)
        if self.entity.num_embeddings > 1:
            slots = slots + self.entity(terms.masked_fill(number > 0, 0))
        return slots

    def _atoms(self, atoms: Tensor, slots: Tensor, matches: Tensor | None) -> Tensor:
        """Embed atoms before message passing, `[N, A, C]`."""
        pairs = slots.unflatten(1, (-1, 2)).flatten(2)
        h = self.start(torch.cat((self.predicate(atoms[..., 0]), pairs), -1))
        h = torch.cat((h[:, :1] + self.first, h[:, 1:]), 1)
        if matches is None:
            return h
        found = matches.to(h.dtype)
        return h + self.matches(torch.stack((found.log1p(), (found > 0).to(h.dtype)), -1))


class ProofDot(nn.Module):
    """Encoder by the mean over atoms of predicate + head - tail, followed by a residual network.

    This is the state encoder of DeepProofLog (https://arxiv.org/abs/2511.08581), used as a baseline.

    Args:
        symbols: sizes of the tables.
        config: see `ProofConfig`.
    """

    def __init__(self, symbols: Symbols, config: ProofConfig) -> None:
        super().__init__()
        width = config.hidden
        self.predicate = nn.Embedding(symbols.predicates + 1, width, padding_idx=0)
        self.term = nn.Embedding(symbols.entities + symbols.variables + 1, width, padding_idx=0)
        for table in (self.predicate, self.term):
            nn.init.normal_(table.weight, std=config.entity_scale)
        self.inputs = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.LayerNorm(width))
        self.blocks = nn.ModuleList(_block(width, width) for _ in range(config.rounds))

    def forward(self, atoms: Tensor, query: Tensor, matches: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Encode states `atoms [N, A, 3]` to `[N, C]`; query and matches are not used."""
        exists = (atoms[..., :1] > 0).to(self.predicate.weight.dtype)
        each = self.predicate(atoms[..., 0]) + self.term(atoms[..., 1]) - self.term(atoms[..., 2])
        h = self.inputs((each * exists).sum(1) / exists.sum(1).clamp(min=1))
        for block in self.blocks:
            h = h + block(h)
        return h


def _block(inputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width))


def _sharing(terms: Tensor) -> Tensor:
    """Build the matrix that averages over arguments `[N, 2A]` with the same term, `[N, 2A, 2A]`."""
    same = (terms.unsqueeze(-1) == terms.unsqueeze(-2)) & (terms > 0).unsqueeze(-1)
    return functional.normalize(same.to(torch.get_default_dtype()), p=1.0, dim=-1)
