"""What people call from Python: train, evaluate, load a policy. The same code as behind the command line."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgewise.evaluation.result import Evaluation
    from edgewise.experiments.recipe import AnyRun
    from edgewise.graphs.policy import Policy
    from edgewise.training.logging.progress import Watcher


def train(
    source: str | PathLike[str] | AnyRun,
    *,
    folder: str | PathLike[str] | None = None,
    watcher: Watcher | None = None,
    **settings: Any,
) -> Path:
    """Train a recipe to the end, and return its run folder.

    Args:
        source: name of a recipe, path of a YAML or JSON file that names one, or a config.
        folder: the run folder to make; the next free one under `runs/` if not given.
        watcher: is told how the run does; nothing is shown if not given.
        settings: by last name where only one field has it, else by dotted path or as a mapping per section.

    Example:
        >>> run = train("graphwalk-ppo", total_frames=1_000_000, env={"num_nodes": 20})
    """
    from edgewise.experiments.load import load_config

    config = load_config(source if not isinstance(source, PathLike) else str(source), keywords=settings)
    from edgewise.experiments.launch import start

    return start(config, folder=None if folder is None else Path(folder), watcher=watcher)


def evaluate(
    run: str | PathLike[str],
    *,
    episodes: int | None = None,
    seed: int | None = None,
    checkpoint: str = "best",
    deterministic: bool = True,
    device: str | None = None,
    **settings: Any,
) -> Evaluation:
    """Play the policy of a run on fixed instances, and return every episode's measures.

    Args:
        run: a run folder, or a checkpoint's folder within one.
        episodes: how many instances; as in the run's own evaluation if not given.
        seed: of the instances; as in the run's own evaluation if not given.
        checkpoint: `best` or `latest`.
        deterministic: whether the policy acts by its mode.
        device: where to play; the run's own device if not given.
        settings: fields of the environment's config that differ, such as its size.

    Example:
        >>> evaluate(run, num_nodes=40, episodes=200).summary()["return"].estimate
    """
    from edgewise.experiments.measure import measure_run

    return measure_run(
        Path(run),
        settings=settings,
        episodes=episodes,
        seed=seed,
        which=checkpoint,
        deterministic=deterministic,
        device=device,
        apart=False,
    )[0]


def load_policy(
    path: str | PathLike[str], *, checkpoint: str = "best", device: str | None = None, **settings: Any
) -> Policy:
    """The trained policy of a run: a module that sets `action` in a TensorDict of its environment.

    It draws its actions under TorchRL's `ExplorationType.RANDOM`, and acts by its mode under `DETERMINISTIC`.

    Args:
        path: a run folder, or a checkpoint's folder within one.
        checkpoint: `best` or `latest`.
        device: where to act; the run's own device if not given.
        settings: fields of the environment's config that differ from the run's, such as its size.
    """
    from edgewise.experiments.measure import load_trained

    return load_trained(Path(path), settings=settings, which=checkpoint, device=device).policy
