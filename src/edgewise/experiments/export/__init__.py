"""Write policies for other programs: ONNX or `torch.export`, with a signature, an example and a README."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import torch

from edgewise.config.errors import CheckpointError, ConfigError
from edgewise.envs.policy import Policy, acting_in
from edgewise.evaluation.request import CHECKPOINTS
from edgewise.experiments.evaluate import Trained, load_trained
from edgewise.experiments.export.check import (
    WORLDS,
    Checked,
    Latency,
    as_arrays,
    check,
    check_parts,
    measure,
    observations,
    traced_sizes,
)
from edgewise.experiments.export.program import Format, need_packages, save, trace
from edgewise.experiments.export.readme import describe, write_readme
from edgewise.models.distributions.masked import without_mask_checks
from edgewise.models.policy_function import ExportablePolicy, PolicyFunction, Tensors
from edgewise.plugins import environment
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.folder import RunFolder

SIGNATURE, EXAMPLE, README = "signature.json", "example.npz", "README.md"


@dataclass(frozen=True)
class Exported:
    """A policy that was written, and how it compares with the policy of the run.

    Attributes:
        folder: of the files.
        files: their names.
        traced: sizes of the dimensions that vary, in the inputs that were traced.
        checked: the comparison with the policy.
        latency: of a decision in one world.
    """

    folder: Path
    files: tuple[str, ...]
    traced: dict[str, int]
    checked: Checked
    latency: Latency


def export(run: Path, folder: Path, *, format: Format = "onnx", which: str = "best") -> Exported:
    """Write the policy of a run into a new folder, and check it.

    Args:
        run: a run folder, or a checkpoint's folder within one.
        folder: for the files; must not exist.
        format: `onnx`, or `pt2` for `torch.export`.
        which: the `best` or the `latest` checkpoint, or the name of one.

    Raises:
        ConfigError: the policy cannot be exported, the program differs from it, or the folder exists.
        CheckpointError: the checkpoint does not exist or is damaged.
    """
    need_packages(format)
    if os.path.lexists(folder):
        raise ConfigError(f"{folder} exists already", hint="choose another folder with --out")
    if which not in CHECKPOINTS:
        run, which = _checkpoint(run, which), "best"
    trained = load_trained(run, which=which, device="cpu")
    config = trained.config
    env = environment(config.env_name).load("env")(config.env, num_envs=WORLDS, seed=0, device="cpu")
    return export_policy(trained.policy, env, folder, format=format, about=_about(trained))


def export_policy(
    policy: Policy, env: Any, folder: Path, *, format: Format = "onnx", about: dict[str, Any] | None = None
) -> Exported:
    """Write a policy into a new folder, and check it.

    Args:
        policy: the policy, on a CPU.
        env: an environment of the policy with `WORLDS` worlds.
        folder: for the files; must not exist. It appears when all of them are written and checked.
        format: `onnx`, or `pt2` for `torch.export`.
        about: entries of `signature.json` that say where the policy comes from.

    Raises:
        ConfigError: the policy cannot be exported, or the program differs from it.
    """
    function, sizes = as_function(policy, env), {}
    stage = folder.with_name(f".{folder.name}.stage-{os.getpid()}")
    path = stage / f"policy.{format}"
    try:
        stage.mkdir(parents=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {folder}: {error.strerror}") from error
    try:
        sizes = traced_sizes(function)
        example = function.sample(sizes, torch.Generator().manual_seed(0))
        check_outputs(function, example)
        program = trace(function, example)
        save(function, program, path, example=example)
        parts = function.parts()
        described_parts = {
            name: _save_part(part, stage, name, format, example) for name, part in parts.items()
        }
        with acting_in(policy, env):
            roots = observations(policy, env)
            checked = check(function, roots, path)
            if parts:
                paths = {name: stage / each["file"] for name, each in described_parts.items()}
                tried = check_parts(function, parts, roots, paths)
                checked = replace(checked, tried=(*checked.tried, *tried))
            if not checked.passed:
                raise ConfigError(
                    f"the program differs from the policy by {checked.largest_difference:g}, and in "
                    f"{checked.differing_actions} of {checked.actions} actions: nothing was written"
                )
            first = roots[0][:1]
            latency = measure(function, policy, first, path)
        inputs = as_arrays(function.inputs_of(first))
        numpy.savez(stage / EXAMPLE, **inputs, action=function.actions_of(first).numpy())  # type: ignore[arg-type]
        described = describe(function, program, about=about or {}, file=path.name, traced=sizes)
        if parts:
            described["parts"] = described_parts
        (stage / SIGNATURE).write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
        write_readme(stage / README, function, described)
        os.rename(stage, folder)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    files = (path.name, *(each["file"] for each in described_parts.values()), SIGNATURE, EXAMPLE, README)
    return Exported(folder, files, sizes, checked, latency)


def _save_part(
    part: PolicyFunction, folder: Path, name: str, format: Format, example: Tensors
) -> dict[str, Any]:
    """Write one part of a policy, add its outputs to the example, and return its entry of the signature."""
    inputs = {info.name: example[info.name] for info in part.inputs}
    program = trace(part, inputs)
    save(part, program, folder / f"{name}.{format}", example=inputs)
    with torch.no_grad(), without_mask_checks():
        example |= part(inputs)
    described = describe(part, program, about={}, file=f"{name}.{format}", traced={})
    return {entry: described[entry] for entry in ("file", "inputs", "outputs")}


def as_function(policy: Policy, env: Any) -> PolicyFunction:
    """Return a policy as a function of named tensors.

    Raises:
        ConfigError: the policy is not one.
    """
    if not isinstance(policy, ExportablePolicy):
        raise ConfigError(
            f"the policy {type(policy).__name__} cannot be exported: it is not a function of named tensors",
            hint="give it a method `as_function(env)` that returns a PolicyFunction",
        )
    return policy.as_function(env).eval()


def check_outputs(function: PolicyFunction, example: Tensors) -> None:
    """Raise ConfigError if a function fails, or gives other outputs than it says.

    Heads of a user's own may have distributions without `logits` and `mode`, which the base class reads.
    """
    head = type(getattr(function, "head", function)).__name__
    hint = f"define `outputs` and `tensors` of {head}: named tensors, `action` among them, see ew.Head"
    try:
        with torch.no_grad(), without_mask_checks():
            found = function(example)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"{head}.tensors cannot give the policy as tensors: {reason}", hint=hint) from error
    if set(found) != set(function.outputs):
        raise ConfigError(
            f"{head}.tensors gives {', '.join(found)}, and its `outputs` name {', '.join(function.outputs)}",
            hint=hint,
        )


def _checkpoint(run: Path, name: str) -> Path:
    """Return the folder of a checkpoint by its name."""
    saved = {path.name: path for path in checkpoint.saved(RunFolder(run).checkpoints)}
    if name not in saved:
        raise CheckpointError(
            f"{run} has no checkpoint {name}; it has {', '.join(saved) or 'none'}",
            hint="choose one of them, best or latest",
        )
    return saved[name]


def _about(trained: Trained) -> dict[str, Any]:
    config = trained.config
    return {
        "recipe": config.recipe,
        "environment": config.env_name,
        "settings": config.env.to_plain(),
        "checkpoint": trained.checkpoint.name,
        "frames": trained.frames,
    }
