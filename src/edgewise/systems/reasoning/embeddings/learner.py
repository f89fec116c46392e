"""Training of knowledge-graph embeddings; every atom gives one question per side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adagrad, Adam, Optimizer

from edgewise.algorithms.state import load_module_state, load_optimizer_state, module_state, optimizer_state
from edgewise.config.errors import NumericalStop
from edgewise.systems.reasoning.embeddings import losses as objectives
from edgewise.systems.reasoning.embeddings.config import KGEConfig
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.embeddings.geometry import moduli
from edgewise.systems.reasoning.embeddings.row_adagrad import RowAdagrad

SPARSE_FROM = 5000
"""Number of entities from which sparse gradients are faster than dense ones."""


class KGELearner:
    """Trainer of a `KnowledgeEmbedding`; equal seeds give equal embeddings.

    Args:
        config: settings of the model and of training.
        num_entities: E of the vocabulary.
        num_predicates: P of the vocabulary.
        device: device of the tables.
    """

    def __init__(
        self, config: KGEConfig, *, num_entities: int, num_predicates: int, device: torch.device | str = "cpu"
    ) -> None:
        self.config = config
        self.epochs_done = 0
        self.generator = torch.Generator().manual_seed(config.seed)
        self._sparse = (
            config.loss != "one_vs_all" and config.optimiser == "adagrad" and num_entities >= SPARSE_FROM
        )
        self.model = KnowledgeEmbedding(
            config.embedding, num_entities=num_entities, num_predicates=num_predicates, sparse=self._sparse
        )
        self.model.initialise(config.init_scale, self.generator)
        self.model.to(device)
        self._optimiser = self._make_optimiser()

    def epoch(self, atoms: Tensor, *, on_batch: Callable[[int], None] | None = None) -> float:
        """Train one epoch on atoms `[n, 3]`, with both questions of each, and return the mean loss.

        Args:
            atoms: (predicate, head, tail).
            on_batch: called with the number of questions processed so far.

        Raises:
            NumericalStop: the loss is not finite.
        """
        self._set_learning_rate()
        questions = self._questions(atoms)
        order = torch.randperm(len(questions), generator=self.generator)
        total = torch.zeros((), device=self._device)
        done = 0
        for rows in order.split(self.config.batch_size):
            total += self.update(questions[rows].to(self._device)) * len(rows)
            done += len(rows)
            if on_batch is not None:
                on_batch(done)
        mean = (total / len(questions)).item()
        if not torch.isfinite(total):
            raise NumericalStop(
                f"the loss of epoch {self.epochs_done + 1} is {mean}", hint="lower the learning rate"
            )
        self.epochs_done += 1
        return mean

    def update(self, questions: Tensor) -> Tensor:
        """Run one optimiser step on questions `[m, 4]`: rows of relation, entity, answer, and head flag."""
        self._optimiser.zero_grad(set_to_none=True)
        if self.config.loss == "one_vs_all":
            loss, factors = self._one_vs_all_loss(questions)
        else:
            loss, factors = self._sampled_loss(questions)
        if self.config.n3 or self.config.dura:
            loss = loss + self._regularisation(*map(self._sizes, factors))
        loss.backward()
        self._optimiser.step()
        return loss.detach()

    def state_dict(self) -> dict[str, Any]:
        """Return tables, optimiser state, generator state and number of epochs."""
        return {
            "model": module_state(self.model),
            "optimiser": optimizer_state(self._optimiser, self.model),
            "generator": self.generator.get_state(),
            "epochs_done": self.epochs_done,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        load_module_state(self.model, state["model"], name="embedding")
        load_optimizer_state(self._optimiser, self.model, state["optimiser"])
        self.generator.set_state(state["generator"])
        self.epochs_done = int(state["epochs_done"])

    def _questions(self, atoms: Tensor) -> Tensor:
        """Return both questions of every atom as rows of the tables, `[2n, 4]`."""
        relation, head, tail = (atoms - 1).unbind(-1)
        for_head = torch.ones_like(head)
        if self.config.embedding.reciprocal:
            reverse = torch.stack([relation + self.model.num_predicates, tail, head, 0 * for_head], -1)
        else:
            reverse = torch.stack([relation, tail, head, for_head], -1)
        return torch.cat([torch.stack([relation, head, tail, 0 * for_head], -1), reverse])

    def _one_vs_all_loss(self, questions: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        relations, given, answers, for_head = questions.unbind(-1)
        entities = self.model.entity_vectors()
        source, relation = entities[given], self.model.relation_vectors(relations)
        scores = self.model.compare(self._combine(source, relation, for_head), entities)
        return objectives.one_vs_all(scores, answers), (source, relation, entities[answers])

    def _sampled_loss(self, questions: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        relations, given, answers, for_head = questions.unbind(-1)
        sample = torch.randint(
            self.model.num_entities, (self.config.negatives,), generator=self.generator
        ).to(self._device)
        count = len(given)
        vectors = self.model.entity_vectors(torch.cat([given, answers, sample]))
        source, target, others = vectors.split([count, count, len(sample)])
        relation = self.model.relation_vectors(relations)
        combined = self._combine(source, relation, for_head)
        positives = self.model.compare_rows(combined, target)
        negatives = self.model.compare(combined, others)
        same, population = sample == answers.unsqueeze(1), self.model.num_entities
        loss = objectives.shared_negatives(positives, negatives, same=same, population=population)
        return loss, (source, relation, target)

    def _regularisation(self, given: Tensor, relation: Tensor, answer: Tensor) -> Tensor:
        """Compute the regularisation of a batch from moduli, each `[m, d]`."""
        total = given.new_zeros(())
        if self.config.n3:
            total = total + self.config.n3 * objectives.n3(given, relation, answer)
        if self.config.dura:
            total = total + self.config.dura * objectives.dura(given, relation, answer)
        return total

    def _combine(self, given: Tensor, relation: Tensor, for_head: Tensor) -> Tensor:
        tail_questions = self.model.combine_for_tail(given, relation)
        if self.config.embedding.reciprocal:
            return tail_questions
        head_questions = self.model.combine_for_head(relation, given)
        return torch.where(for_head.bool().unsqueeze(1), head_questions, tail_questions)

    def _sizes(self, factor: Tensor) -> Tensor:
        return moduli(factor) if self.config.embedding.model == "complex" else factor

    def _make_optimiser(self) -> Optimizer:
        rate, parameters = self.config.learning_rate, self.model.parameters()
        if self.config.optimiser == "adagrad":
            return RowAdagrad(parameters, rate) if self._sparse else Adagrad(parameters, lr=rate)
        return Adam(parameters, lr=rate)

    def _set_learning_rate(self) -> None:
        left = 1 - self.epochs_done / self.config.epochs if self.config.decay == "linear" else 1.0
        for group in self._optimiser.param_groups:
            group["lr"] = self.config.learning_rate * max(left, 0.0)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device
