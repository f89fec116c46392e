"""Trains embeddings of a knowledge graph to a folder; a run that was stopped continues bit for bit."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from edgewise.config.errors import CheckpointError, Interrupted
from edgewise.systems.reasoning.embeddings.config import KGEConfig
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.embeddings.learner import KGELearner
from edgewise.systems.reasoning.embeddings.ranking import rank_all
from edgewise.systems.reasoning.knowledge.dataset import Dataset
from edgewise.training.checkpoint import store as checkpoint
from edgewise.training.interrupt import StopRequest
from edgewise.training.logging.progress import Silence, Watcher

CHECKPOINTS = "checkpoints"
FREE = ("evaluate_every", "save_every")
"""Settings that change nothing about what is learned, so that they may differ when a run continues."""

log = logging.getLogger(__name__)


@dataclass
class Fitted:
    """What training gave.

    Args:
        model: the embeddings.
        losses: mean loss of every epoch.
        validation: figures on the validation atoms by epoch, where they were measured.
        cpu_seconds: of training alone, over all sittings.
    """

    model: KnowledgeEmbedding
    losses: list[float] = field(default_factory=list)
    validation: dict[int, dict[str, float]] = field(default_factory=dict)
    cpu_seconds: float = 0.0


def train_kge(
    dataset: Dataset,
    config: KGEConfig,
    *,
    folder: Path | None = None,
    resume: bool = False,
    watcher: Watcher | None = None,
    device: torch.device | str = "cpu",
) -> Fitted:
    """Train embeddings on `dataset.train`.

    Args:
        dataset: the knowledge graph.
        config: the model and how it is trained.
        folder: where checkpoints go, in a subfolder; none are made if not given.
        resume: continue from the newest checkpoint in `folder`, if there is one.
        watcher: is told of every batch.
        device: where tables live.

    Raises:
        CheckpointError: the checkpoints in `folder` are of another config or vocabulary.
        Interrupted: by Ctrl-C, after a checkpoint.
        NumericalStop: a loss was not finite.
    """
    words = dataset.vocabulary
    learner = KGELearner(
        config, num_entities=words.num_entities, num_predicates=words.num_predicates, device=device
    )
    sitting = _Sitting(dataset, config, learner, folder)
    if resume:
        sitting.take_up()
    shown = watcher or Silence()
    shown.start(learner.epochs_done * sitting.questions, config.epochs * sitting.questions, dataset.name)
    try:
        with StopRequest("this epoch") as stop:
            while learner.epochs_done < config.epochs:
                sitting.epoch(shown)
                sitting.keep(now=stop.received is not None)
                if stop.received is not None and learner.epochs_done < config.epochs:
                    raise sitting.interrupted(stop.received)
    finally:
        shown.close()
    return sitting.fitted


def measure(model: KnowledgeEmbedding, dataset: Dataset, split: str) -> dict[str, float]:
    """Filtered figures of a model on a split, over both sides and all entities."""
    device = next(model.parameters()).device
    return rank_all(
        dataset.split(split).to(device),
        dataset.known().to(device),
        score_tails=model.score_tails,
        score_heads=model.score_heads,
        num_entities=dataset.vocabulary.num_entities,
    ).metrics()


class _Sitting:
    """One sitting of a training run, and what it leaves on disk."""

    def __init__(self, dataset: Dataset, config: KGEConfig, learner: KGELearner, folder: Path | None) -> None:
        self.dataset, self.config, self.learner = dataset, config, learner
        self.fitted = Fitted(learner.model)
        self.questions = 2 * len(dataset.train)
        self._folder = None if folder is None else folder / CHECKPOINTS

    def epoch(self, watcher: Watcher) -> None:
        """Train one epoch, and measure if it is time."""
        began, before = time.process_time(), self.learner.epochs_done * self.questions
        last = {"loss": f"{self.fitted.losses[-1]:.4f}"} if self.fitted.losses else {}
        loss = self.learner.epoch(
            self.dataset.train, on_batch=lambda asked: watcher.update(before + asked, last)
        )
        self.fitted.losses.append(loss)
        self.fitted.cpu_seconds += time.process_time() - began
        done = self.learner.epochs_done
        if self.config.evaluate_every and done % self.config.evaluate_every == 0:
            figures = measure(self.learner.model, self.dataset, "valid")
            self.fitted.validation[done] = figures
            log.info("epoch %d: loss %.4f, validation mrr %.4f", done, loss, figures["mrr"])

    def keep(self, *, now: bool) -> None:
        """Save a checkpoint if it is time, or `now`."""
        done = self.learner.epochs_done
        due = now or done % self.config.save_every == 0 or done == self.config.epochs
        if self._folder is not None and due:
            state = {"learner": self.learner.state_dict(), "run": self._run()}
            checkpoint.save(self._folder, state, step=done, keep_last=1)

    def interrupted(self, signal: str) -> Interrupted:
        """What to say of a sitting that a signal ended."""
        told = f"stopped by {signal} after epoch {self.learner.epochs_done} of {self.config.epochs}"
        if self._folder is None:
            return Interrupted(told)
        hint = f"go on with the same command and --out {self._folder.parent} --resume"
        return Interrupted(f"{told}, saved in {self._folder}", hint=hint)

    def take_up(self) -> None:
        """Continue from the newest checkpoint, if there is one."""
        if self._folder is None or not checkpoint.saved(self._folder):
            return
        state = checkpoint.load(checkpoint.latest(self._folder))
        if state.keys() != {"learner", "run"}:
            raise CheckpointError(f"{self._folder} is of no embeddings", hint="choose another folder")
        run = state["run"]
        self._check(run)
        self.learner.load_state_dict(state["learner"])
        self.fitted.losses = list(run["losses"])
        self.fitted.cpu_seconds = float(run["cpu_seconds"])
        self.fitted.validation = {int(epoch): dict(found) for epoch, found in run["validation"].items()}
        log.info("continuing after epoch %d", self.learner.epochs_done)

    def _run(self) -> dict[str, Any]:
        return {
            "config": self.config.to_plain(),
            "vocabulary": self.dataset.vocabulary.digest,
            "losses": self.fitted.losses,
            "validation": self.fitted.validation,
            "cpu_seconds": self.fitted.cpu_seconds,
        }

    def _check(self, run: Mapping[str, Any]) -> None:
        if run["vocabulary"] != self.dataset.vocabulary.digest:
            raise CheckpointError(f"{self._folder} is of other data", hint="choose another folder")
        ours = self.config.to_plain()
        differing = [name for name in ours if run["config"].get(name) != ours[name] and name not in FREE]
        if differing:
            raise CheckpointError(
                f"{self._folder} was trained with other settings: {', '.join(differing)}",
                hint="give the same settings, or choose another folder",
            )
