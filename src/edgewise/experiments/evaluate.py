"""Evaluates trained runs and baselines on fixed instances, at any size of the environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from edgewise.algorithms.algorithm import Algorithm
from edgewise.config.errors import CheckpointError, ConfigError
from edgewise.config.run import AnyRun
from edgewise.envs.graphs_config import with_split
from edgewise.envs.policy import Policy
from edgewise.evaluation.ablation import ComparedPolicy, ablate
from edgewise.evaluation.episodes import Progress
from edgewise.evaluation.instances import Instances, changed
from edgewise.evaluation.request import CHECKPOINTS, EvaluationRequest
from edgewise.evaluation.result import Evaluation
from edgewise.evaluation.stages import split_by_stage
from edgewise.experiments.build import Builder
from edgewise.experiments.graph_record import refuse_trained_graphs
from edgewise.experiments.load import load_config
from edgewise.experiments.lookahead import search_policy
from edgewise.experiments.policy import TrainedPolicy
from edgewise.graphs.datasets import with_named_graphs
from edgewise.plugins import environment
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.code import warn_of_changes
from edgewise.runs.folder import RunFolder
from edgewise.training.fitting import check_revision

WEIGHTS = ("algorithm", "trainer")
"""The parts of a checkpoint that a policy needs; collected data is in another and is not read."""


@dataclass(frozen=True)
class Ablated:
    """The evaluation of a policy without something, and how often that changes what it does.

    Attributes:
        what: that it acted without.
        result: of the ablated policy.
        changed_actions: share of the actions of the whole policy, along its own episodes, that the ablated
            one would have chosen differently.
    """

    what: str
    result: Evaluation
    changed_actions: float


@dataclass(frozen=True)
class Trained:
    """A trained policy for an environment of the settings that it was loaded for."""

    config: AnyRun
    algorithm: Algorithm
    frames: int
    checkpoint: Path

    def for_users(self) -> TrainedPolicy:
        """Return the policy with `act`, and an environment of one world that it was loaded for."""
        config = self.config
        env = environment(config.env_name).load("env")(config.env, num_envs=1, seed=0, device=config.device)
        return TrainedPolicy(self.policy, env)

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self.algorithm.policy


def load_trained(
    run: Path,
    *,
    settings: Mapping[str, Any] | None = None,
    which: str = "best",
    device: str | None = None,
    config: AnyRun | None = None,
) -> Trained:
    """Load the policy of a run, for its own environment or one of other settings.

    Args:
        run: a run folder, or a checkpoint's folder within one.
        settings: fields of the environment's config that differ, such as its size.
        which: the `best` checkpoint or the `latest`, where `run` is not a checkpoint itself.
        device: of the policy; the run's own device if not given.
        config: of the run, if it was read already.

    Raises:
        CheckpointError: the checkpoint is damaged, or its weights do not fit these settings.
    """
    folder, path = _locate(run, which)
    config = load_config(folder.config_file) if config is None else config
    config = config.model_copy(update={"device": device or config.device})
    warn_of_changes(config, folder.path)
    folder.warn_of_damage("config.json", "versions.json")
    settings = with_named_graphs(settings or {})
    config = config.model_copy(update={"env": changed(config.env, settings)})
    state = checkpoint.load(path, parts=WEIGHTS)
    check_revision(path, state["trainer"])
    kept = _numbers_in(state["algorithm"])
    algorithm = Builder(without_curriculum(config), num_envs=1, kept=kept).algorithm
    try:
        algorithm.load_state_dict(state["algorithm"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"the weights in {path} do not fit {config.name}: {error}") from error
    return Trained(config=config, algorithm=algorithm, frames=checkpoint.step_of(path), checkpoint=path)


def _numbers_in(state: Any) -> int:
    """Return how many numbers the tensors of a nested state have."""
    if isinstance(state, torch.Tensor):
        return state.numel()
    inner = state.values() if isinstance(state, Mapping) else state if isinstance(state, list | tuple) else ()
    return sum(map(_numbers_in, inner))


def without_curriculum(config: AnyRun) -> AnyRun:
    """Drop the stages, whose settings may not fit an environment of another size."""
    training = config.training.model_copy(update={"curriculum": (), "compile": False})
    return config.model_copy(update={"training": training})


def evaluate_run(
    run: Path, request: EvaluationRequest, *, by_stage: bool = True, progress: Progress | None = None
) -> list[Evaluation]:
    """Evaluate the policy of a run on fixed instances, and baselines on the same.

    Args:
        run: a run folder, or a checkpoint's folder within one.
        request: instances, checkpoint and decoding.
        by_stage: whether each stage of the run's evaluation gives a result; otherwise one, with
            `success.STAGE`.
        progress: called every few steps of the policy's episodes; see `evaluate`.

    Returns:
        The policy, then the baselines.
    """
    trained, instances = load_on_instances(run, request)
    how = request.decoding
    decoded = replace(instances, decode=how, progress=progress)
    policy = trained.policy
    if how is not None and how.kind == "search":
        policy = search_policy(instances.env, trained.algorithm, simulations=how.width or 1)
    own = replace(decoded(policy), policy=_folder(run).path.name, frames=trained.frames)
    found = [own, *evaluate_baselines(instances, request.baselines)]
    return [part for one in found for part in parts_of(one, instances)] if by_stage else found


def evaluate_ablations(
    run: Path, names: Sequence[str], request: EvaluationRequest
) -> list[tuple[Evaluation, Ablated]]:
    """Evaluate the policy of a run as it is, and without each thing in `names`, on the same instances.

    Args:
        run: a run folder, or a checkpoint's folder within one.
        names: what the policy acts without, one after the other; see `edgewise.evaluation.ablation.ablate`.
        request: instances and checkpoint.

    Returns:
        The evaluation of the policy as it is with each ablation; where the run's evaluation has stages, one
        pair for each stage.
    """
    trained, instances = load_on_instances(run, request)
    env, name = instances.env, _folder(run).path.name
    policies = {each: ablate(trained.policy, each, env) for each in names}
    whole = parts_of(replace(instances(trained.policy), policy=name, frames=trained.frames), instances)
    found = []
    for each, policy in policies.items():
        compared = ComparedPolicy(trained.policy, policy, env)
        share = compared.share(instances(compared))
        result = replace(instances(policy), policy=f"{name} without {each}", frames=trained.frames)
        ablated = [Ablated(each, part, share) for part in parts_of(result, instances)]
        found += list(zip(whole, ablated, strict=True))
    return found


def load_on_instances(run: Path, request: EvaluationRequest) -> tuple[Trained, Instances]:
    """Load the policy of a run and build the instances that a request asks for.

    Where the run's evaluation has stages and no settings are given, the instances are those of its stages in
    one batch, and the number of episodes is that of every stage.
    """
    own = load_config(_folder(run).config_file)
    chosen = own.evaluation
    differing = with_split(own.env, {**chosen.settings, **with_named_graphs(request.settings)})
    refuse_trained_graphs(own.env, differing, _folder(run).path)
    trained = load_trained(
        run, settings=differing, which=request.checkpoint, device=request.device, config=own
    )
    stages = () if request.settings else chosen.stages
    changes = {
        "stages": tuple(
            stage.model_copy(update={"episodes": request.episodes or stage.episodes}) for stage in stages
        ),
        "episodes": request.episodes or chosen.episodes,
        "seed": chosen.seed if request.seed is None else request.seed,
        "settings": differing,
    }
    evaluation = chosen.model_copy(update=changes)
    asked = own.model_copy(update={"evaluation": evaluation, "device": trained.config.device})
    instances = Instances.of(asked, entry=environment(own.env_name))
    return trained, replace(instances, deterministic=request.deterministic)


def parts_of(evaluation: Evaluation, instances: Instances) -> list[Evaluation]:
    """Return the results of each stage of the instances; the evaluation itself where they have none."""
    return split_by_stage(evaluation, instances.stages) if instances.stages else [evaluation]


def evaluate_baselines(instances: Instances, names: Sequence[str]) -> list[Evaluation]:
    """Evaluate baselines on the instances; `all` for every one."""
    policies = instances.baselines(tuple(names))
    return [replace(instances(policy), policy=name, baseline=True) for name, policy in policies.items()]


def environment_of(run: Path) -> str:
    """Return the name or address of the environment of a run, given its folder or a checkpoint's."""
    return load_config(_folder(run).config_file).env_name


def _folder(run: Path) -> RunFolder:
    return RunFolder(run.resolve().parents[1] if checkpoint.NAME.fullmatch(run.name) else run)


def _locate(run: Path, which: str) -> tuple[RunFolder, Path]:
    """Return the run folder and the checkpoint that `run` and `which` refer to."""
    if which not in CHECKPOINTS:
        raise ConfigError(f"checkpoint: got {which}, expected {' or '.join(CHECKPOINTS)}")
    folder = _folder(run)
    if checkpoint.NAME.fullmatch(run.name):
        return folder, run
    find = checkpoint.best if which == "best" else checkpoint.latest
    return folder, find(folder.checkpoints, parts=WEIGHTS)
