"""The functions that people call from Python. The command line calls the same code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise import plugins
from edgewise.experiments.guest import as_guest

if TYPE_CHECKING:
    from edgewise.config.run import AnyRun
    from edgewise.evaluation.result import Evaluation
    from edgewise.experiments.policy import TrainedPolicy
    from edgewise.experiments.run import Run
    from edgewise.training.callbacks import Callback


@as_guest()
def train(
    source: str | PathLike[str] | AnyRun | type,
    *,
    algorithm: str | type | Mapping[str, Any] | None = None,
    folder: str | PathLike[str] | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
    **settings: Any,
) -> Run:
    """Train to the end, and return the run.

    Args:
        source: name of a recipe; name, address or class of an environment; path of a YAML or JSON file; or a
            config.
        algorithm: name, address or class of an algorithm, where `source` is an environment; PPO if not given.
            A mapping holds settings of the algorithm, as for every other section.
        folder: run folder to create; the next free one under `runs/` if not given.
        callbacks: objects that are called at the start, after each batch, evaluation and checkpoint, and at
            the end; see `ew.Callback`.
        progress: whether to show a progress bar, or log lines where there is no terminal.
        settings: by last name where only one field has it, else by dotted path or as a mapping per section.
            `graphs`, for environments that take any, may be a path, or a list or PyG Dataset of graphs, which
            are then kept in the run folder.

    Example:
        >>> run = train("graphwalk-ppo", total_frames=1_000_000, env={"num_nodes": 20})
    """
    from edgewise.experiments.load import load_config

    if isinstance(algorithm, Mapping):
        settings["algorithm"], algorithm = dict(algorithm), None
    plugins.allow_typed(_words((source, algorithm, settings)))
    if {"graphs", "env.graphs", "env"} & settings.keys():
        from edgewise.graphs.datasets import with_named_graphs

        settings = with_named_graphs(settings)
    chosen = fspath(source) if isinstance(source, PathLike) else source
    config = load_config(chosen, algorithm=algorithm, keywords=settings)
    from edgewise.experiments.launch import start
    from edgewise.experiments.run import Run
    from edgewise.training.logging.progress import ShowProgress

    place = None if folder is None else Path(folder)
    shown = [ShowProgress()] if progress else []
    return Run(start(config, folder=place, callbacks=[*shown, *callbacks]))


def open_run(path: str | PathLike[str], *, plugins: Sequence[str] = ()) -> Run:
    """Open a run folder.

    Args:
        path: of the run folder, or `zoo:NAME` for a policy that comes with edgewise.
        plugins: files or modules with the run's own code, such as `["tsp.py"]`. A run folder by itself
            imports nothing.

    Example:
        >>> run = open_run("runs/tsp-1", plugins=["tsp.py"])
    """
    from edgewise.experiments.run import Run
    from edgewise.runs.zoo import run_path

    _use(plugins)
    return Run(run_path(path))


@as_guest()
def evaluate(
    run: str | PathLike[str],
    *,
    episodes: int | None = None,
    seed: int | None = None,
    checkpoint: str = "best",
    deterministic: bool = True,
    decode: str | None = None,
    device: str | None = None,
    plugins: Sequence[str] = (),
    **settings: Any,
) -> Evaluation:
    """Evaluate the policy of a run on fixed instances, and return every episode's measures.

    Args:
        run: a run, its folder, a checkpoint's folder within it, or `zoo:NAME`.
        episodes: number of instances; as in the run's own evaluation if not given.
        seed: of the instances; as in the run's own evaluation if not given.
        checkpoint: `best` or `latest`.
        deterministic: whether the policy acts by its mode.
        decode: how several episodes of each instance are played, of which the best by return counts:
            `greedy`, `sample:64`, `multistart`, `multistart:8` or `beam:8`; one episode if not given.
        device: on which to evaluate; the run's own device if not given.
        plugins: as in `open_run`.
        settings: fields of the environment's config that differ, such as its size.

    Example:
        >>> evaluate(run, num_nodes=40, episodes=200).summary()["return"].estimate
    """
    from edgewise.evaluation.request import EvaluationRequest
    from edgewise.experiments.evaluate import evaluate_run
    from edgewise.runs.zoo import run_path

    _use(plugins)
    request = EvaluationRequest(
        episodes=episodes,
        seed=seed,
        settings=settings,
        checkpoint=checkpoint,
        deterministic=deterministic,
        decode=decode,
        device=device,
    )
    return evaluate_run(run_path(run), request, by_stage=False)[0]


@as_guest()
def load_policy(
    path: str | PathLike[str],
    *,
    checkpoint: str = "best",
    device: str | None = None,
    plugins: Sequence[str] = (),
    **settings: Any,
) -> TrainedPolicy:
    """Load the trained policy of a run: a module that sets `action` in a TensorDict of its environment.

    It samples under TorchRL's `ExplorationType.RANDOM`; under `DETERMINISTIC` and in `act` it takes its mode.

    Args:
        path: a run, its folder, a checkpoint's folder within it, or `zoo:NAME`.
        checkpoint: `best` or `latest`.
        device: of the policy; the run's own device if not given.
        plugins: as in `open_run`.
        settings: fields of the environment's config that differ from the run's, such as its size.
    """
    from edgewise.experiments.evaluate import load_trained
    from edgewise.runs.zoo import run_path

    _use(plugins)
    return load_trained(run_path(path), settings=settings, which=checkpoint, device=device).for_users()


def _use(references: Sequence[str]) -> None:
    for reference in (references,) if isinstance(references, str) else references:
        plugins.use_plugin(fspath(reference))


def _words(value: Any) -> list[str]:
    """Return every text among arguments: what is typed in Python is the user's own word."""
    if isinstance(value, str | PathLike):
        return [fspath(value)]
    if isinstance(value, dict):
        return [word for item in value.values() for word in _words(item)]
    if isinstance(value, list | tuple):
        return [word for item in value for word in _words(item)]
    return []
