"""A run as users hold it in Python: its folder, its metrics, and what can be done with it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.config.errors import ConfigError
from edgewise.config.run import AnyRun
from edgewise.experiments.guest import as_guest
from edgewise.experiments.load import load_config
from edgewise.report.metrics_table import read_metrics
from edgewise.runs.folder import RunFolder

if TYPE_CHECKING:
    from edgewise.evaluation.result import Evaluation
    from edgewise.experiments.policy import TrainedPolicy
    from edgewise.report.curve_plot import CurveFigure
    from edgewise.report.pictures.write import Picture
    from edgewise.training.callbacks import Callback


class Run:
    """A run folder, opened. `os.fspath(run)` and `str(run)` are its path.

    Args:
        path: of the run folder.

    Example:
        >>> run = ew.open_run("runs/graphwalk-ppo-1")
        >>> run.metrics["frames"][-1]
        >>> run.evaluate(num_nodes=40)
    """

    def __init__(self, path: Path | str) -> None:
        self._folder = RunFolder(path)

    @property
    def path(self) -> Path:
        """The run folder."""
        return self._folder.path

    @property
    def name(self) -> str:
        """The name of the run folder."""
        return self.path.name

    @property
    def config(self) -> AnyRun:
        """The resolved config."""
        return load_config(self._folder.config_file)

    @property
    def metrics(self) -> dict[str, np.ndarray]:
        """The columns of metrics.csv: arrays of numbers, NaN where a cell is empty, or of text."""
        table = read_metrics(self.path / "metrics.csv")
        return {**table.columns, **{name: np.array(texts) for name, texts in table.texts.items()}}

    @as_guest()
    def evaluate(self, *, baselines: Sequence[str] | str = (), **options: Any) -> Evaluation:
        """Evaluate the policy on fixed instances, and baselines on the same.

        Args:
            baselines: names of baselines, or `all`; their evaluations are the result's `others`.
            options: as in `ew.evaluate`: `episodes`, `seed`, `checkpoint`, `deterministic`, `decode`,
                `device`, and fields of the environment's config that differ, such as its size.
        """
        from edgewise.evaluation.request import EvaluationRequest
        from edgewise.experiments.evaluate import evaluate_run

        names = (baselines,) if isinstance(baselines, str) else tuple(baselines)
        known = {field.name for field in fields(EvaluationRequest)} - {"settings", "baselines"}
        request = EvaluationRequest(
            **{name: value for name, value in options.items() if name in known},
            baselines=names,
            settings={name: value for name, value in options.items() if name not in known},
        )
        found, *others = evaluate_run(self.path, request, by_stage=False)
        return replace(found, others=tuple(others))

    @as_guest()
    def policy(
        self, *, checkpoint: str = "best", device: str | None = None, **settings: Any
    ) -> TrainedPolicy:
        """Load the trained policy; see `ew.load_policy`."""
        from edgewise.experiments.evaluate import load_trained

        return load_trained(self.path, settings=settings, which=checkpoint, device=device).for_users()

    @as_guest()
    def resume(
        self,
        *,
        total_frames: int | None = None,
        curriculum: Sequence[Mapping[str, Any]] | None = None,
        device: str | None = None,
        ray_address: str | None = None,
        callbacks: Iterable[Callback] = (),
        progress: bool = True,
        accept_changed_code: bool = False,
    ) -> Run:
        """Continue training from the last checkpoint, to `total_frames` in all if given; see `ew.train`.

        The first stage of a new `curriculum` begins now, unless the run is in one of its stages. A run with
        workers on a cluster needs its address: a run folder does not decide where to connect.
        """
        from edgewise import plugins
        from edgewise.experiments.launch import resume
        from edgewise.training.logging.progress import ShowProgress

        plugins.allow_typed([] if ray_address is None else [ray_address])
        changes = {
            "training.total_frames": total_frames,
            "training.curriculum": None if curriculum is None else [dict(stage) for stage in curriculum],
            "device": device,
            "ray.address": ray_address,
        }
        resume(
            self.path,
            keywords={name: value for name, value in changes.items() if value is not None},
            callbacks=[*([ShowProgress()] if progress else []), *callbacks],
            accept_changed_code=accept_changed_code,
        )
        return self

    def report(self) -> Path:
        """Write the report of the run, and return its path."""
        from edgewise.report.page import write_report

        return write_report(self.path)

    def plot(self, *measures: str, log: bool = False) -> CurveFigure:
        """Plot measures of `metrics` over frames, by default the return; needs matplotlib.

        Args:
            measures: names of columns, such as `evaluation/return` or `learn/entropy`.
            log: whether the vertical axes are logarithmic.
        """
        from edgewise.report.curve_plot import plot_measures

        return plot_measures({self.name: self.metrics}, measures, log=log)

    @as_guest()
    def render(
        self, to: Path | str | None = None, *, episode: int = 0, frame: int | None = None, **options: Any
    ) -> Path | Picture:
        """Draw an episode: one that was recorded, or one that the policy plays now if none was.

        Args:
            to: a file that ends with .svg, .png, .gif or .mp4; if not given, a picture for notebooks.
            episode: which of the newest evaluation.
            frame: the moment of a picture, counted from 0, or from the end if negative.
            options: `fps`, `width`, `bare` and `theme` (`light` or `dark`).
        """
        from edgewise.evaluation.request import EvaluationRequest
        from edgewise.experiments.episodes import play_episode, recorded_episode
        from edgewise.report.pictures.write import Picture, svg, write

        replay = recorded_episode(self.path, episode)
        if replay is None:
            replay = play_episode(self.path, EvaluationRequest(device="cpu"))
        if to is None:
            return Picture(svg(replay, frame=-1 if frame is None else frame, **options))
        return write(replay, Path(to), frame=frame, **options)

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """Return a short page for notebooks: what was trained, how far, how well, and where the report is."""
        rows = {"run": str(self.path)}
        try:
            config, metrics = self.config, self.metrics
            rows["environment"], rows["algorithm"] = config.env_name, config.algorithm_name
            if len(metrics.get("frames", ())):
                rows["frames"] = f"{int(np.nanmax(metrics['frames'])):,} of {config.training.total_frames:,}"
            evaluated = metrics.get("evaluation/return", np.empty(0))
            evaluated = evaluated[~np.isnan(evaluated)]
            if len(evaluated):
                rows["return in evaluation"] = f"{evaluated[-1]:.4g} (first {evaluated[0]:.4g})"
        except (ConfigError, OSError, ValueError) as error:
            rows["problem"] = str(error)
        report = self.path / "report.html"
        if report.exists():
            rows["report"] = str(report)
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in rows.items()
        )
        return f"<table>{cells}</table>"
