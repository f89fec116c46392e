"""Finds the recipe that a name, a file or a config means, and lays file and flags over it, without torch."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from edgewise import plugins
from edgewise.config.documents import read
from edgewise.config.errors import ConfigError
from edgewise.config.layers import Layer, Problem
from edgewise.config.loading import resolve
from edgewise.config.model import Config
from edgewise.config.run import AnyRun, RunConfig
from edgewise.config.settings import from_flags, from_keywords
from edgewise.config.wording import did_you_mean
from edgewise.envs.graphs_config import check_training_split, with_split
from edgewise.experiments.defaults import defaults
from edgewise.experiments.recipes import nearest, recipe
from edgewise.graphs.in_memory import remember_run
from edgewise.plugins.addresses import Address
from edgewise.runs.code import named_code
from edgewise.runs.upgrade import upgrade

log = logging.getLogger(__name__)


class Unchecked(Config):
    """Stands for the parts of a config whose fields only its recipe knows, while the recipe is unknown."""

    model_config = ConfigDict(extra="allow")


def load_config(
    source: str | Path | AnyRun | type,
    *,
    algorithm: str | type | None = None,
    file: str | Path | Layer | None = None,
    flags: Sequence[tuple[str, str | None]] = (),
    keywords: Mapping[str, Any] | None = None,
) -> AnyRun:
    """Return the config of a run: recipe or defaults, then file, then flags or keywords; later ones win.

    Args:
        source: name of a recipe; name, address or class of an environment; path of a YAML or JSON file; or a
            config.
        algorithm: name, address or class of an algorithm, for a `source` that is an environment.
        file: a further file, or what was read from one, for a `source` that is a recipe or an environment.
        flags: as typed, `("--env.num-nodes", "7")`; the last name is enough where it is unambiguous.
        keywords: the same from Python, `{"total_frames": 1_000_000}`.

    Raises:
        ConfigError: naming every problem.
    """
    if isinstance(source, RunConfig):
        layers, schema = [Layer("the given config", source.to_plain())], type(source)
    else:
        layers, schema = _base(_reference(source), file, _reference(algorithm))
    return _over(layers, schema, flags=flags, keywords=keywords)


def from_plain(values: Mapping[str, Any]) -> AnyRun:
    """Return the config whose `to_plain` gave these values, such as in another process.

    Raises:
        ConfigError: naming every problem, or what is not known here.
    """
    named = values.get("recipe")
    if named is None:
        schema = defaults(values["env_name"], values["algorithm_name"])[1]
    else:
        schema = recipe(named).schema
    return resolve(schema, [Layer("the config of the run", dict(values))])


BUDGETS = {"--minutes": "--training.minutes", "minutes": "training.minutes"}
"""Short names of the time budget, which `checkpoint.minutes` would make ambiguous."""


def _reference(given: Any) -> Any:
    """Return a name or address for what was given; a class is registered, since the user has it in hand."""
    if isinstance(given, type):
        if "<locals>" in given.__qualname__:
            raise ConfigError(
                f"{given.__name__} is defined in a function, where a run could not find it again",
                hint="define it at the top level of a file or of a notebook",
            )
        plugins.register(given)
        return plugins.address_of(given)
    return None if given is None else str(given)


def _over(
    layers: Sequence[Layer],
    schema: type[AnyRun],
    *,
    flags: Sequence[tuple[str, str | None]] = (),
    keywords: Mapping[str, Any] | None = None,
) -> AnyRun:
    """Put flags or keywords over the layers; they cannot change what the run is made of."""
    layers, below = list(layers), len(layers)
    if flags:
        layers.append(from_flags(schema, [(BUDGETS.get(flag, flag), text) for flag, text in flags]))
    if keywords:
        named = {BUDGETS.get(name, name): value for name, value in keywords.items()}
        layers.append(from_keywords(schema, named))
    for layer in layers[below:]:
        for name in schema.decided:
            if layer.values.pop(name, None) is not None:
                reason = "is chosen by what is trained, and cannot be changed by a setting"
                layer.problems.append(Problem(layer.origin((name,)), (name,), reason))
    config = _with_evaluation_split(resolve(schema, without_replaced_schedules(layers)))
    _refuse_other_parts(config)
    for kind, reference in named_code(config.model):
        plugins.check_allowed(kind, reference)
    return config


def _refuse_other_parts(config: AnyRun) -> None:
    """Refuse a file that names a recipe, and an environment or algorithm that is not the recipe's."""
    if config.recipe is None:
        return
    own = recipe(config.recipe).config
    for name in ("env_name", "algorithm_name"):
        if getattr(config, name) != getattr(own, name):
            given, expected = getattr(config, name), getattr(own, name)
            raise ConfigError(
                f"{name}: got {given}, but the recipe {config.recipe} has {expected}",
                hint="leave out one of them",
            )


def _with_evaluation_split(config: AnyRun) -> AnyRun:
    """Name the split of given graphs that the run is evaluated on, and refuse to train on it."""
    check_training_split(config.env)
    settings = with_split(config.env, config.evaluation.settings)
    if settings == config.evaluation.settings:
        return config
    return config.model_copy(
        update={"evaluation": config.evaluation.model_copy(update={"settings": settings})}
    )


def _base(
    source: str, file: str | Path | Layer | None, algorithm: str | None
) -> tuple[list[Layer], type[AnyRun]]:
    """Return the layers below flags, and their schema; a stand-in where what is trained is unknown."""
    if source in plugins.recipes() or _is_recipe(source):
        found = recipe(source)
        if algorithm is not None:
            raise ConfigError(
                f"{source} is a recipe, which has its algorithm already",
                hint=f"name the environment instead: {found.config.env_name} --algorithm {algorithm}",
            )
        layers = [Layer(f"recipe {source}", {**found.config.to_plain(), "recipe": source})]
        return (layers if file is None else [*layers, _read_for(source, file)]), found.schema
    if _is_file(source):
        if file is not None:
            raise ConfigError(
                f"{source} is a file already, so {file} has nothing to change", hint="give one file"
            )
        return _from_file(source, algorithm)
    if source in plugins.environments() or Address.parse(source) is not None:
        layer, schema = defaults(source, algorithm)
        return ([layer] if file is None else [layer, _read(file)]), schema
    return _by_name(source, file, algorithm)


def _is_recipe(source: str) -> bool:
    """Return whether an address is that of a recipe; a file with both is taken for its environment."""
    if Address.parse(source) is None:
        return False
    for kind in ("environment", "recipe"):
        try:
            plugins.find(kind, source)
        except ConfigError:
            continue
        return kind == "recipe"
    return False


def _by_name(
    source: str, file: str | Path | Layer | None, algorithm: str | None
) -> tuple[list[Layer], type[AnyRun]]:
    """Look a name up among the plug-ins of the project's file."""
    plugins.use_project_plugins()
    if source in plugins.recipes() or source in plugins.environments():
        return _base(source, file, algorithm)
    names = [*plugins.recipes(), *plugins.environments()]
    files = [name for end in (".py", ".yaml", ".json") if Path(name := f"{source}{end}").is_file()]
    near = f"did you mean {files[0]}?" if files else did_you_mean(source, names)
    raise ConfigError(
        f"no recipe, environment or file is called {source}",
        hint=near
        if near.startswith("did")
        else f"recipes: {', '.join(plugins.recipes())}; environments: {', '.join(plugins.environments())}",
    )


def _from_file(source: str, algorithm: str | None) -> tuple[list[Layer], type[AnyRun]]:
    """Return the layers of a file and of the recipe or environment that it names."""
    layer = read(Path(source))
    named, env_name = layer.values.get("recipe"), layer.values.get("env_name")
    is_complete = (Path(source).parent / "versions.json").is_file()
    if is_complete and isinstance(layer.values.get("env"), Mapping):
        remember_run(layer.values["env"].get("graphs"), Path(source).parent)
    if isinstance(named, str):
        try:
            found = recipe(named)
        except ConfigError as error:
            layer.problems.append(_unknown_recipe(layer, named, error))
        else:
            if is_complete:
                return [_upgraded(layer, found.schema)], found.schema
            return [Layer(f"recipe {named}", found.config.to_plain()), layer], found.schema
    elif isinstance(env_name, str):
        chosen = algorithm or layer.values.get("algorithm_name")
        try:
            usual, schema = defaults(env_name, chosen if isinstance(chosen, str) else None)
        except ConfigError as error:
            raise ConfigError(f"{layer.origin(('env_name',))}: {error.message}", hint=error.hint) from error
        return ([_upgraded(layer, schema)] if is_complete else [usual, layer]), schema
    elif not layer.problems or "recipe" in layer.values:
        layer.problems.append(_unknown_recipe(layer, named, None))
    stand_in = {"recipe": "unknown", "name": "unknown", "env": {}, "model": {}, "algorithm": {}}
    return [Layer("", stand_in), layer], RunConfig[Unchecked, Unchecked, Unchecked]


def _upgraded(layer: Layer, schema: type[AnyRun]) -> Layer:
    """Return the config of a run folder as this version would have written it."""
    values, reasons = upgrade(layer.values, schema)
    problems = [
        Problem(layer.name, (), f"{reason}; use edgewise 0.2 for this run, or train again")
        for reason in reasons
    ]
    return replace(layer, values=values, problems=[*layer.problems, *problems])


def without_replaced_schedules(layers: Sequence[Layer]) -> list[Layer]:
    """Drop the schedule of each number that a later layer sets by itself: the later word wins."""
    kept = [replace(layer, values=deepcopy(layer.values)) for layer in layers]
    for index, layer in enumerate(kept):
        numbers = layer.values.get("algorithm")
        own = _schedules(layer)
        for name in numbers if isinstance(numbers, Mapping) else ():
            if name in own:
                continue
            for below in kept[:index]:
                if _schedules(below).pop(name, None) is not None:
                    log.info("%s: %s replaces its schedule", layer.origin(("algorithm", name)), name)
    return kept


def _schedules(layer: Layer) -> dict[str, Any]:
    training = layer.values.get("training")
    found = training.get("schedules") if isinstance(training, Mapping) else None
    return found if isinstance(found, dict) else {}


def _is_file(source: str) -> bool:
    return Path(source).suffix in (".yaml", ".yml", ".json") or (
        Path(source).is_file() and Path(source).suffix != ".py"
    )


def _unknown_recipe(layer: Layer, named: Any, error: ConfigError | None) -> Problem:
    if named is None:
        return Problem(
            layer.name,
            ("recipe",),
            "is missing; name what is trained: a recipe under `recipe`, or an environment under `env_name`",
        )
    if error is not None and not error.message.startswith("no recipe"):
        return Problem(layer.origin(("recipe",)), ("recipe",), f"{error.message}; {error.hint}")
    reason = f"got {named!r}, expected the name of a recipe; {nearest(str(named))}"
    return Problem(layer.origin(("recipe",)), ("recipe",), reason)


def _read(file: str | Path | Layer) -> Layer:
    return file if isinstance(file, Layer) else read(Path(file))


def _read_for(name: str, file: str | Path | Layer) -> Layer:
    """Read a file that changes the recipe called `name`; if it names one, then this one."""
    layer = _read(file)
    named = layer.values.get("recipe", name)
    if named != name:
        reason = f"got {named!r}, but the command says {name}; let them agree, or leave the field out"
        layer.problems.append(Problem(layer.origin(("recipe",)), ("recipe",), reason))
    return layer
