"""Finds the recipe that a name, a file or a config means, and lays file and flags over it, without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from edgewise.config import plugins
from edgewise.config.documents import read
from edgewise.config.errors import ConfigError
from edgewise.config.layers import Layer, PlannedRun, Problem
from edgewise.config.loading import resolve
from edgewise.config.model import Config
from edgewise.config.run import RunConfig
from edgewise.config.settings import from_flags, from_keywords
from edgewise.experiments.recipe import AnyRun
from edgewise.experiments.recipes import nearest, recipe


class Unchecked(Config):
    """Stands for the parts of a config whose fields only its recipe knows, while the recipe is unknown."""

    model_config = ConfigDict(extra="allow")


def load_config(
    source: str | Path | AnyRun,
    *,
    file: str | Path | None = None,
    flags: Sequence[tuple[str, str | None]] = (),
    keywords: Mapping[str, Any] | None = None,
) -> AnyRun:
    """The config of a run: recipe, then file, then flags or keywords, each winning over the one before.

    Args:
        source: name of a recipe, path of a YAML or JSON file that names one under `recipe`, or a config.
        file: a further file, for a `source` that is a recipe.
        flags: as typed, `("--env.num-nodes", "7")`; last names do where they are unambiguous.
        keywords: the same from Python, `{"total_frames": 1_000_000}`.

    Raises:
        ConfigError: naming every problem.
    """
    if isinstance(source, RunConfig):
        layers, schema = [Layer("the given config", source.to_plain())], type(source)
    else:
        layers, schema = _base(str(source), file)
    return _over(layers, schema, flags=flags, keywords=keywords)


def load_runs(
    source: str | Path, *, file: str | Path | None = None, flags: Sequence[tuple[str, str | None]] = ()
) -> list[tuple[AnyRun, Path | None]]:
    """The configs of all runs that a source asks for, each with where its run folder goes, if it says.

    A recipe is one run, and so is a file that changes one; a file in the layout of a system may be many.

    Args:
        source: as in `load_config`.
        file: as in `load_config`.
        flags: as in `load_config`; they change every run.
    """
    layer = read(Path(source)) if str(source) not in plugins.recipes() and _is_file(str(source)) else None
    planned = None if layer is None or file is not None else _planned_runs(layer)
    if planned is None:
        return [(load_config(source, file=file, flags=flags), None)]
    return [(_over(*_on_recipe(run), flags=flags), run.folder) for run in planned]


def _over(
    layers: Sequence[Layer],
    schema: type[AnyRun],
    *,
    flags: Sequence[tuple[str, str | None]] = (),
    keywords: Mapping[str, Any] | None = None,
) -> AnyRun:
    """The config of these layers with flags or keywords over them, which choose no recipe."""
    layers, below = list(layers), len(layers)
    if flags:
        layers.append(from_flags(schema, flags))
    if keywords:
        layers.append(from_keywords(schema, keywords))
    for layer in layers[below:]:
        if layer.values.pop("recipe", None) is not None:
            reason = "a recipe is chosen by its name alone, and cannot be changed by a setting"
            layer.problems.append(Problem(layer.origin(("recipe",)), ("recipe",), reason))
    return resolve(schema, layers)


def _base(source: str, file: str | Path | None) -> tuple[list[Layer], type[AnyRun]]:
    """The layers of recipe and file, and the schema of the recipe; of what is known where that is not."""
    if source in plugins.recipes():
        found = recipe(source)
        layers = [Layer(f"recipe {source}", found.config.to_plain())]
        return (layers if file is None else [*layers, _read_for(source, Path(file))]), found.schema
    if not _is_file(source):
        raise ConfigError(f"no recipe and no file is called {source}", hint=nearest(source))
    if file is not None:
        raise ConfigError(
            f"{source} is a file already, so {file} has nothing to change", hint="give one file"
        )
    layer = read(Path(source))
    planned = _planned_runs(layer)
    if planned is not None:
        return _on_recipe(_only_run(planned, layer))
    named = layer.values.get("recipe")
    if isinstance(named, str) and named in plugins.recipes():
        found = recipe(named)
        return [Layer(f"recipe {named}", found.config.to_plain()), layer], found.schema
    if not layer.problems or "recipe" in layer.values:
        layer.problems.append(_unknown_recipe(layer, named))
    stand_in = {"recipe": "unknown", "name": "unknown", "env": {}, "model": {}, "algorithm": {}}
    return [Layer("", stand_in), layer], RunConfig[Unchecked, Unchecked, Unchecked]


def _on_recipe(run: PlannedRun) -> tuple[list[Layer], type[AnyRun]]:
    """A planned run over its recipe."""
    found = recipe(run.layer.values["recipe"])
    return [Layer(f"recipe {found.name}", found.config.to_plain()), run.layer], found.schema


def _planned_runs(layer: Layer) -> list[PlannedRun] | None:
    """Return the runs of a file in another layout; None for a file that changes a recipe."""
    for file_format in plugins.file_formats():
        if file_format.recognises(layer):
            runs: list[PlannedRun] = file_format.planned_runs(layer)
            return runs
    return None


def _only_run(runs: list[PlannedRun], layer: Layer) -> PlannedRun:
    if len(runs) > 1:
        raise ConfigError(
            f"{layer.name} asks for {len(runs)} runs, where one is wanted",
            hint="`edgewise train` runs them one after another; here, name one agent and one seed",
        )
    return runs[0]


def _is_file(source: str) -> bool:
    return Path(source).suffix in (".yaml", ".yml", ".json") or Path(source).exists()


def _unknown_recipe(layer: Layer, named: Any) -> Problem:
    if named is None:
        return Problem(
            layer.name,
            ("recipe",),
            f"is missing; say which one the file changes: {', '.join(plugins.recipes())}",
        )
    reason = f"got {named!r}, expected the name of a recipe; {nearest(str(named))}"
    return Problem(layer.origin(("recipe",)), ("recipe",), reason)


def _read_for(name: str, file: Path) -> Layer:
    """A file laid over the recipe called `name`; if it names one, then this one."""
    layer = read(file)
    named = layer.values.get("recipe", name)
    if named != name:
        reason = f"got {named!r}, but the command says {name}; let them agree, or leave the field out"
        layer.problems.append(Problem(layer.origin(("recipe",)), ("recipe",), reason))
    return layer
