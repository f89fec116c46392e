"""Train knowledge-graph embeddings with checkpoints; an interrupted run resumes bit for bit."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from edgewise.config.errors import CheckpointError, Interrupted
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.systems.reasoning.embeddings.config import KGEConfig
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.embeddings.learner import KGELearner
from edgewise.systems.reasoning.embeddings.ranking import rank_all
from edgewise.systems.reasoning.knowledge.dataset import Dataset
from edgewise.training.interrupt import StopRequest
from edgewise.training.logging.progress import NoProgress, ProgressReporter

CHECKPOINTS = "checkpoints"
FREE_SETTINGS = ("evaluate_every", "save_every")
"""Settings that do not affect the result, so they may change when a run resumes."""

log = logging.getLogger(__name__)


@dataclass
class TrainingResult:
    """The result of training.

    Args:
        model: the trained embeddings.
        losses: mean loss of every epoch.
        validation: figures on the validation atoms, by epoch of evaluation.
        cpu_seconds: CPU time of training only, summed over resumed runs.
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
    progress: ProgressReporter | None = None,
    device: torch.device | str = "cpu",
) -> TrainingResult:
    """Train embeddings on `dataset.train`.

    Args:
        dataset: the knowledge graph.
        config: settings of the model and of training.
        folder: checkpoints are written to a subfolder; none if not given.
        resume: continue from the newest checkpoint in `folder`, if there is one.
        progress: shows how the run is doing.
        device: device of the tables.

    Raises:
        CheckpointError: the checkpoints in `folder` have another config or vocabulary.
        Interrupted: by Ctrl-C, after a checkpoint.
        NumericalStop: a loss is not finite.
    """
    words = dataset.vocabulary
    learner = KGELearner(
        config, num_entities=words.num_entities, num_predicates=words.num_predicates, device=device
    )
    run = _TrainingRun(dataset, config, learner, folder)
    if resume:
        run.resume()
    shown = progress or NoProgress()
    shown.start(learner.epochs_done * run.questions, config.epochs * run.questions, dataset.name)
    try:
        with StopRequest("this epoch") as stop:
            while learner.epochs_done < config.epochs:
                run.epoch(shown)
                run.save_checkpoint(now=stop.received is not None)
                if stop.received is not None and learner.epochs_done < config.epochs:
                    raise run.interrupted(stop.received)
    finally:
        shown.close()
    return run.result


def measure(model: KnowledgeEmbedding, dataset: Dataset, split: str) -> dict[str, float]:
    """Compute filtered ranking figures of a model on a split, over both sides and all entities."""
    device = next(model.parameters()).device
    return rank_all(
        dataset.split(split).to(device),
        dataset.known().to(device),
        score_tails=model.score_tails,
        score_heads=model.score_heads,
        num_entities=dataset.vocabulary.num_entities,
    ).metrics()


class _TrainingRun:
    """State of a training run and its checkpoints."""

    def __init__(self, dataset: Dataset, config: KGEConfig, learner: KGELearner, folder: Path | None) -> None:
        self.dataset, self.config, self.learner = dataset, config, learner
        self.result = TrainingResult(learner.model)
        self.questions = 2 * len(dataset.train)
        self._folder = None if folder is None else folder / CHECKPOINTS

    def epoch(self, progress: ProgressReporter) -> None:
        """Train one epoch, and evaluate if it is due."""
        began, before = time.process_time(), self.learner.epochs_done * self.questions
        last = {"loss": f"{self.result.losses[-1]:.4f}"} if self.result.losses else {}
        loss = self.learner.epoch(
            self.dataset.train, on_batch=lambda done: progress.update(before + done, last)
        )
        self.result.losses.append(loss)
        self.result.cpu_seconds += time.process_time() - began
        done = self.learner.epochs_done
        if self.config.evaluate_every and done % self.config.evaluate_every == 0:
            figures = measure(self.learner.model, self.dataset, "valid")
            self.result.validation[done] = figures
            log.info("epoch %d: loss %.4f, validation mrr %.4f", done, loss, figures["mrr"])

    def save_checkpoint(self, *, now: bool) -> None:
        """Save a checkpoint if one is due, or `now`."""
        done = self.learner.epochs_done
        due = now or done % self.config.save_every == 0 or done == self.config.epochs
        if self._folder is not None and due:
            state = {"learner": self.learner.state_dict(), "run": self._run_state()}
            checkpoint.save(self._folder, state, step=done, keep_last=1)

    def interrupted(self, signal: str) -> Interrupted:
        """Return the exception for a run that a signal ended."""
        message = f"stopped by {signal} after epoch {self.learner.epochs_done} of {self.config.epochs}"
        if self._folder is None:
            return Interrupted(message)
        hint = f"continue with the same command and --out {self._folder.parent} --resume"
        return Interrupted(f"{message}, saved in {self._folder}", hint=hint)

    def resume(self) -> None:
        """Continue from the newest checkpoint, if there is one."""
        if self._folder is None or not checkpoint.saved(self._folder):
            return
        state = checkpoint.load(checkpoint.latest(self._folder))
        if state.keys() != {"learner", "run"}:
            raise CheckpointError(
                f"{self._folder} has no checkpoints of embeddings", hint="choose another folder"
            )
        run = state["run"]
        self._check(run)
        self.learner.load_state_dict(state["learner"])
        self.result.losses = list(run["losses"])
        self.result.cpu_seconds = float(run["cpu_seconds"])
        self.result.validation = {int(epoch): dict(found) for epoch, found in run["validation"].items()}
        log.info("continuing after epoch %d", self.learner.epochs_done)

    def _run_state(self) -> dict[str, Any]:
        return {
            "config": self.config.to_plain(),
            "vocabulary": self.dataset.vocabulary.digest,
            "losses": self.result.losses,
            "validation": self.result.validation,
            "cpu_seconds": self.result.cpu_seconds,
        }

    def _check(self, run: Mapping[str, Any]) -> None:
        if run["vocabulary"] != self.dataset.vocabulary.digest:
            raise CheckpointError(f"{self._folder} was trained on other data", hint="choose another folder")
        ours = self.config.to_plain()
        differing = [
            name for name in ours if run["config"].get(name) != ours[name] and name not in FREE_SETTINGS
        ]
        if differing:
            raise CheckpointError(
                f"{self._folder} was trained with other settings: {', '.join(differing)}",
                hint="give the same settings, or choose another folder",
            )
