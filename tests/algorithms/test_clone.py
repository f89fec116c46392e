"""Cloning and DAgger: who leads, what is kept, what is measured, and that a run resumes bit for bit."""

import shutil

import pytest
import torch
from benchmarks.kill_resume import differences
from tests.algorithms.experts import EXPERTS, SETTINGS, imitator
from tests.algorithms.worlds import batches, toy

from edgewise.algorithms.clone import EXPERT_ACTION
from edgewise.config.errors import ConfigError
from edgewise.data.demonstrations import ExpertMixture
from edgewise.data.rollout import Rollout
from edgewise.envs.registry import make_env
from edgewise.experiments.build import Builder
from edgewise.experiments.launch import resume, start
from edgewise.experiments.load import load_config
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.systems.queueing.baselines import MaxWeight

SMALL_RUN = {
    "training": {"total_frames": 128, "num_envs": 4, "rollout_length": 8},
    "algorithm": {"updates": 2, "minibatch_size": 16},
    "model": {"encoder": {"hidden": 8, "heads": 2, "layers": 1}},
    "evaluation": {"every": None, "episodes": 2, "settings": {"max_steps": 4}},
    "logging": {"tensorboard": False, "replays": 0},
    "checkpoint": {"every": 32},
}


def constant(value):
    return lambda root: root.set("action", torch.full(root.batch_size, value))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_expert_leads_in_its_share_of_the_steps(share):
    root = toy("marked", num_envs=4000).reset()
    torch.manual_seed(0)
    led = ExpertMixture(constant(1), constant(0), expert_share=lambda: share)(root)["action"].float().mean()
    assert abs(led - share) <= 4 * (share * (1 - share) / 4000) ** 0.5


def test_a_mixture_writes_the_action_alone():
    """So batches keep their entries when the lead changes."""
    env = toy("marked")
    learner = imitator(env).policy
    for share in (0.0, 0.5, 1.0):
        mixture = ExpertMixture(EXPERTS["MarkedNode"], learner, expert_share=lambda share=share: share)
        root = env.reset()
        before = set(root.keys(True, True))
        assert set(mixture(root).keys(True, True)) == before | {"action"}


def test_demonstrations_are_the_experts_and_keep_the_state():
    env = make_env("queueing", num_envs=4, seed=0)
    expert = MaxWeight(env)
    shown = Rollout(env, expert, rollout_length=6, keep_state=True).collect()
    again = expert(shown.reshape(-1).copy())["action"]
    assert torch.equal(again, shown["action"].reshape(-1, 3))


def test_labels_are_the_experts_whoever_led():
    """The batch is the learner's, and its own actions are left alone."""
    env = make_env("queueing", num_envs=8, seed=0)
    algorithm = imitator(toy("marked"))
    algorithm.expert = MaxWeight(env)
    nobody = lambda root: root.set("action", torch.zeros_like(root["action_mask"]))  # noqa: E731
    batch = Rollout(env, nobody, rollout_length=5, keep_state=True).collect()
    labelled = algorithm.label(batch)
    queues = batch["state", "queues"].reshape(-1, 3)
    ends, middle = queues[:, 0] + queues[:, 2], queues[:, 1]
    clear = ends != middle
    assert torch.equal(labelled[EXPERT_ACTION][clear][:, 1], (middle > ends)[clear])
    assert not batch["action"].any()
    assert "state" not in set(labelled.keys())


@pytest.mark.parametrize(("size", "kept"), [(None, [64, 128, 192]), (100, [64, 100, 100])])
def test_the_buffer_gathers_all_or_slides(size, kept):
    env = toy("marked", num_envs=16)
    algorithm = imitator(env, config=SETTINGS.model_copy(update={"buffer_size": size, "updates": 1}))
    newest = []
    for batch, count in zip(batches(env, algorithm, 3, steps=4), kept, strict=True):
        newest = [*newest, *batch["graph", "x"].reshape(-1, 5, 1).clone()]
        assert algorithm.learn(batch)["buffered"] == count
        assert torch.equal(algorithm.buffer["graph", "x"], torch.stack(newest[-count:]))


def test_match_counts_agents_that_act():
    """An expert that agrees everywhere but at absent agents matches perfectly; one that never does, not."""
    env = toy("signals")
    algorithm = imitator(env)
    batch = next(batches(env, algorithm, 1))
    own = algorithm.policy.get_dist(batch.reshape(-1)).mode
    absent = ~batch["agents", "active"].reshape(-1, 3)
    algorithm.expert = lambda root: root.set("action", torch.where(absent, 1 - own, own))
    assert algorithm.match(algorithm.label(batch)) == 1.0
    algorithm.expert = lambda root: root.set("action", 1 - own)
    assert algorithm.match(algorithm.label(batch)) == 0.0


def test_a_scheduled_share_reaches_who_leads():
    algorithm = imitator(toy("marked"))
    algorithm.set_scalar("expert_share", 0.25)
    algorithm.set_scalar("updates", 3.7)
    assert algorithm.expert_share() == 0.25
    assert algorithm.config.updates == 4
    with pytest.raises(ValueError, match="Clone has no numeric setting"):
        algorithm.set_scalar("expert", 1.0)


def test_an_expert_that_is_not_there():
    config = load_config("queueing-line3-clone", keywords={"algorithm": {"expert": "maxwait"}})
    with pytest.raises(ConfigError, match=r"algorithm.expert: got maxwait.*queueing"):
        Builder(config).parts()


def test_a_run_resumes_bit_for_bit(tmp_path):
    """Buffer, mixture and moments: a run that goes on from an old checkpoint ends as it did before."""
    whole = start(load_config("queueing-line3-clone", keywords=SMALL_RUN), folder=tmp_path / "whole")
    shutil.copytree(whole, tmp_path / "again")
    for path in checkpoint.saved(tmp_path / "again" / "checkpoints")[1:]:
        shutil.rmtree(path)
    resume(tmp_path / "again")
    assert differences(whole, tmp_path / "again") == []


def test_what_an_idle_agent_should_have_done_does_not_matter():
    env = toy("signals")
    algorithm = imitator(env)
    batch = next(batches(env, algorithm, 1))
    samples = algorithm.label(batch)
    active = samples["agents", "active"]
    assert not active.all()
    other = samples.clone()
    other[EXPERT_ACTION] = torch.where(active, samples[EXPERT_ACTION], 1 - samples[EXPERT_ACTION])
    assert torch.equal(algorithm.match(other), algorithm.match(samples))
    assert torch.equal(algorithm._loss(other), algorithm._loss(samples))
    decisions = -algorithm.policy.get_dist(samples).log_prob(samples[EXPERT_ACTION])[active]
    torch.testing.assert_close(algorithm._loss(samples), decisions.mean())
