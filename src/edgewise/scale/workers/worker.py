"""What a worker does: it builds the worlds of a share from the config of a run, and collects and evaluates.

A worker keeps nothing between calls. Weights, the state of the worlds and all random states come with a call
and go back with its reply, so any worker can do any call, and a call that is repeated has the same result to
the last bit.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict

from edgewise import plugins
from edgewise.algorithms.algorithm import Algorithm
from edgewise.algorithms.state import load_module_state, module_state
from edgewise.config.errors import ConfigError, EdgewiseError
from edgewise.config.run import AnyRun
from edgewise.config.seeds import derive_seed
from edgewise.evaluation.result import Evaluation
from edgewise.graphs.ragged import padded
from edgewise.runs import folder as run_folder
from edgewise.runs.checkpoint import random_state
from edgewise.runs.checkpoint.serialise import State
from edgewise.runs.code import records_of
from edgewise.scale.workers.message import Failure, Message, pack, unpack
from edgewise.training.health import observation_of

BUILDER = "edgewise.experiments.build:worker_builder"
"""Address of the function that builds the parts of a worker: `experiments` is above this package."""
VALUES = ("returns", "lengths", "finished", "agent_returns")
"""Arrays of an evaluation."""


@dataclass(frozen=True)
class Blueprint:
    """What a worker is built from, in words that any machine understands.

    Args:
        config: of the run, as plain values.
        num_envs: worlds of a share.
        plugins: files and modules that the user allowed.
        folder: from which relative paths lead to files.
        code: records of the user's code, which must be equal where the worker is.
        versions: of the packages that decide results.
    """

    config: Mapping[str, Any]
    num_envs: int
    plugins: tuple[str, ...]
    folder: str
    code: tuple[Mapping[str, Any], ...]
    versions: Mapping[str, str]

    @classmethod
    def of(cls, config: AnyRun, *, num_envs: int) -> Blueprint:
        """Describe the workers of a run, as seen from this process."""
        return cls(
            config=config.to_plain(),
            num_envs=num_envs,
            plugins=tuple(_references()),
            folder=str(Path.cwd()),
            code=tuple(record.to_plain() for record in records_of(config)),
            versions=run_folder.versions(),
        )

    def to_json(self) -> str:
        """Return the blueprint as text."""
        return json.dumps(vars(self))

    @classmethod
    def from_json(cls, text: str) -> Blueprint:
        """Read a blueprint."""
        return cls(**json.loads(text))


class Worker:
    """Collects batches of any share of the worlds of a run, and evaluates its policy.

    Args:
        blueprint: what to build.

    Raises:
        ConfigError: this machine has other versions or other code, or lacks a file.
    """

    def __init__(self, blueprint: Blueprint) -> None:
        _refuse_other_versions(blueprint.versions)
        for reference in blueprint.plugins:
            plugins.use_plugin(reference)
        self._builder = plugins.load(BUILDER)(blueprint.config, num_envs=blueprint.num_envs)
        config = self._builder.config
        _refuse_other_code(blueprint.code, config)
        torch.set_num_threads(config.threads)
        self._seed = config.seed

    def answer(self, verb: str, order: Message, call: Message) -> Message:
        """Do what a call asks, and return the reply; errors are replies too.

        Args:
            verb: `collect` or `evaluate`.
            order: weights and numbers to act with.
            call: what else the verb needs.
        """
        try:
            followed = unpack(order)
            self._follow(followed)
            if verb == "collect":
                return pack(self._collect(unpack(call), stage=followed["stage"]))
            return pack(self._evaluate(unpack(call)))
        except EdgewiseError as error:
            return pack(_failure(error, error.message, error.hint).to_state())
        except Exception as error:
            return pack(_failure(error, traceback.format_exc()).to_state())

    def _collect(self, call: State, *, stage: Mapping[str, Any]) -> State:
        """Collect the next batch of a share.

        Args:
            call: `share`, its number, and `state`, that of the last reply, empty before the first batch.
            stage: settings of worlds that start from now on.

        Returns:
            `batch`, `[num_envs, T]`, and `state`.
        """
        builder, rollout = self._builder, self._builder.collector
        if call["state"]:
            rollout.load_state_dict(call["state"]["rollout"])
            random_state.restore(call["state"]["random"])
            for name, state in call["state"]["generators"].items():
                getattr(builder.algorithm, name).set_state(state.clone())
        else:
            self._begin(call["share"])
        builder.env.load_state_dict({"stage": stage}, strict=False)
        batch = rollout.collect()
        state = {
            "rollout": rollout.state_dict(),
            "random": random_state.capture(),
            "generators": {name: getattr(builder.algorithm, name).get_state() for name in self._generators},
        }
        return {"batch": padded(batch).to_dict(), "size": list(batch.batch_size), "state": state}

    def _evaluate(self, call: State) -> State:
        """Evaluate the policy on the fixed instances.

        Args:
            call: `record`, the number of episodes to record, and `random`, the random states to begin with.
        """
        random_state.restore(call["random"])
        policy = self._builder.algorithm.policy
        return evaluation_to_state(self._builder.evaluator(policy, record=call["record"]))

    @property
    def _generators(self) -> tuple[str, ...]:
        return self._builder.algorithm.acting_generators

    def _begin(self, share: int) -> None:
        """Begin a share with random numbers of its own."""
        builder, name = self._builder, f"share {share}"
        builder.env.set_seed(derive_seed(self._seed, f"env of {name}"))
        builder.collector.load_state_dict({"env": builder.env.state_dict(), "carried": {}})
        for index, generator in enumerate(self._generators):
            seed = derive_seed(self._seed, f"generator {index} of {name}")
            getattr(builder.algorithm, generator).manual_seed(seed)
        random_state.seed(derive_seed(self._seed, name))

    def _follow(self, order: State) -> None:
        """Act with the weights and numbers of an order from now on."""
        algorithm = self._builder.algorithm
        module = algorithm.acting_module
        if module is not None:
            load_module_state(module, order["weights"], name="policy")
        now = algorithm.scalars()
        for name, value in order["scalars"].items():
            if now.get(name) != value:
                algorithm.set_scalar(name, value)


def order_of(algorithm: Algorithm) -> State:
    """Return what a worker needs to act as an algorithm does now."""
    module = algorithm.acting_module
    return {"weights": {} if module is None else module_state(module), "scalars": algorithm.scalars()}


def evaluation_to_state(found: Evaluation) -> State:
    """Return an evaluation as a state, with its recordings."""
    plain = {name: value for name, value in vars(found).items() if isinstance(value, str | bool | int | None)}
    arrays = {name: value for name in VALUES if (value := getattr(found, name)) is not None}
    recorded = {
        name: [{"entries": each.to_dict(), "size": list(each.batch_size)} for each in getattr(found, name)]
        for name in ("recordings", "recorded_steps")
    }
    return {
        "plain": plain,
        "settings": json.dumps(dict(found.settings)),
        "values": {name: torch.as_tensor(value) for name, value in arrays.items()},
        "metrics": {name: torch.as_tensor(value) for name, value in found.metrics.items()},
        "recorded": recorded,
    }


def evaluation_from_state(state: State) -> Evaluation:
    """Return the evaluation of a state; it shares no memory with it."""
    plain: dict[str, Any] = state["plain"]
    recorded = {
        name: tuple(TensorDict(each["entries"], each["size"]).clone() for each in listed)
        for name, listed in state["recorded"].items()
    }
    values = {name: value.numpy().copy() for name, value in state["values"].items()}
    return Evaluation(
        **{**plain, **values, **recorded},
        metrics={name: value.numpy().copy() for name, value in state["metrics"].items()},
        settings=json.loads(state["settings"]),
    )


def _refuse_other_versions(wanted: Mapping[str, str]) -> None:
    here = run_folder.versions()
    for name, version in wanted.items():
        if here.get(name) != version:
            raise ConfigError(
                f"workers: {_machine()} has {name} {here.get(name, 'not installed')}, and the run has "
                f"{version}: results would differ between machines",
                hint=f"install {name}=={version} there",
            )


def _refuse_other_code(wanted: Any, config: AnyRun) -> None:
    changes = plugins.changed_code(wanted, records_of(config))
    if changes:
        raise ConfigError(
            f"workers: {_machine()} has other code than the run: {'; '.join(changes)}",
            hint="copy the files, or use a file system that all machines share",
        )


def _references() -> list[str]:
    """Return the files and modules that define what the user brought, as a worker finds them.

    Raises:
        ConfigError: something is defined in no file.
    """
    found = plugins.references()
    if "__main__" in found:
        raise ConfigError(
            "workers: a class that is defined in an interactive session cannot be found on other machines",
            hint="write it to a file, and give its address, such as tsp.py:TSPEnv",
        )
    return found


def _machine() -> str:
    return os.uname().nodename


def _failure(error: Exception, message: str, hint: str | None = None) -> Failure:
    root = observation_of(error)
    entries = None if root is None else {"entries": root.to_dict(), "size": list(root.batch_size)}
    return Failure(type(error).__name__, message, hint, entries)
