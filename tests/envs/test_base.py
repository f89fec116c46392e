"""The base: a right TorchRL environment, lean steps that equal plain ones, resets that keep to their rows."""

from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.envs.patrol import PatrolConfig, PatrolEnv
from torchrl.collectors import Collector
from torchrl.envs import (
    Compose,
    EnvBase,
    EnvCreator,
    ParallelEnv,
    RewardSum,
    SerialEnv,
    StepCounter,
    TransformedEnv,
)
from torchrl.envs.utils import _StepMDP, check_env_specs

from edgewise.config.errors import ConfigError
from edgewise.data.random_policy import RandomPolicy
from edgewise.envs.registry import make_env
from edgewise.systems.graphwalk.config import GraphwalkConfig
from edgewise.systems.graphwalk.env import GraphwalkEnv


def walk(num_envs=5, seed=0, **fields):
    return GraphwalkEnv(GraphwalkConfig(**fields), num_envs=num_envs, seed=seed)


def patrol(num_envs=5, seed=0, **fields):
    return PatrolEnv(PatrolConfig(**fields), num_envs=num_envs, seed=seed)


def same(left, right):
    """Whether two TensorDicts have the same names and the same numbers."""
    names = set(left.keys(include_nested=True, leaves_only=True))
    return names == set(right.keys(include_nested=True, leaves_only=True)) and all(
        torch.equal(left[name], right[name]) for name in names
    )


def midway(env, steps=4):
    root = env.reset()
    for _ in range(steps):
        _, root = env.step_and_maybe_reset(env.rand_action(root))
    return env.rand_action(root)


@pytest.mark.parametrize("make", [walk, patrol])
class TestUnderTorchRL:
    def test_specs_hold_under_transforms(self, make):
        env = TransformedEnv(make(), Compose(StepCounter(), RewardSum()))
        check_env_specs(env, break_when_any_done="both")

    def test_a_transform_sees_episodes_begin_and_end(self, make):
        env = TransformedEnv(make(seed=3), StepCounter())
        batch = env.rollout(60, break_when_any_done=False)
        assert batch["next", "done"].any()
        assert torch.equal(batch["step_count"].squeeze(-1), batch["state", "step"])

    def test_a_collector_chains_steps_and_episodes(self, make):
        env = make(seed=1)
        policy = RandomPolicy(env.actions, env.graph, seed=0)
        (batch,) = list(Collector(env, policy, frames_per_batch=200, total_frames=200))
        assert batch.batch_size == (5, 40)
        going_on = ~batch["next", "done"][:, :-1].squeeze(-1)
        for name in (("state", "step"), ("graph", "x"), "action_mask"):
            root, following = batch[name][:, 1:], batch["next"][name][:, :-1]
            assert torch.equal(root[going_on], following[going_on]), name
        assert not batch["state", "step"][:, 1:][~going_on].any()
        assert not going_on.all()

    def test_steps_in_other_processes_or_one_after_another(self, make):
        workers = [partial(make, 3, seed=0), EnvCreator(partial(make, 3, seed=1))]
        serial, parallel = SerialEnv(2, workers), ParallelEnv(2, workers, mp_start_method="fork")
        try:
            batches = []
            for env in (serial, parallel):
                torch.manual_seed(0)
                root = env.reset()
                for _ in range(12):
                    root["action"] = torch.stack([make(3).rand_action(row.clone())["action"] for row in root])
                    stepped, root = env.step_and_maybe_reset(root)
                batches.append(stepped)
            assert torch.equal(batches[0]["next", "graph", "x"], batches[1]["next", "graph", "x"])
            assert torch.equal(batches[0]["next", "reward"], batches[1]["next", "reward"])
            assert not torch.equal(batches[0]["graph", "x"][0], batches[0]["graph", "x"][1])
        finally:
            parallel.close()
            serial.close()

    def test_the_lean_step_is_the_plain_step(self, make):
        env = make()
        root = midway(env)
        lean, plain = env.step(root.copy()), EnvBase.step(env, root.copy())
        assert same(lean, plain)
        assert same(env.step_mdp(lean), _StepMDP(env, exclude_action=False)(lean))

    def test_what_is_written_in_the_new_root_does_not_reach_the_old_next(self, make):
        env = make()
        stepped, root = env.step_and_maybe_reset(midway(env))
        root["graph", "written"] = torch.ones(5)
        assert ("graph", "written") not in stepped["next"].keys(include_nested=True)

    def test_worlds_held_back_stay_as_they_are(self, make):
        env = make()
        root = midway(env)
        stepped = torch.tensor([True, False, True, False, False])
        following = env.step(root.copy().set("_step", stepped.unsqueeze(-1)))["next"]
        assert same(following[~stepped].select("state", "graph"), root[~stepped].select("state", "graph"))
        assert not following["reward"][~stepped].any()
        assert torch.equal(following["state", "step"][stepped], root["state", "step"][stepped] + 1)


class JointWalkEnv(GraphwalkEnv):
    """Graphwalk, observed once in a step with resets."""

    observes_together = True


class JointPatrolEnv(PatrolEnv):
    """A world with agents, observed once in a step with resets."""

    observes_together = True


@pytest.mark.parametrize(
    ("kind", "plain", "config"),
    [(JointWalkEnv, GraphwalkEnv, GraphwalkConfig), (JointPatrolEnv, PatrolEnv, PatrolConfig)],
)
class TestJointObservation:
    def test_steps_and_resets_are_those_of_separate_observations(self, kind, plain, config):
        envs = [each(config(), num_envs=5, seed=3) for each in (kind, plain)]
        roots, resets = [env.reset() for env in envs], set()
        torch.manual_seed(0)
        for _ in range(60):
            action = envs[0].rand_action(roots[0].copy())["action"]
            pairs = [
                env.step_and_maybe_reset(root.set("action", action))
                for env, root in zip(envs, roots, strict=True)
            ]
            assert same(pairs[0][0], pairs[1][0])
            assert same(pairs[0][1], pairs[1][1])
            roots = [root for _, root in pairs]
            resets.add(int(pairs[0][0]["next", "done"].sum()))
        assert len(resets) > 1

    def test_worlds_are_observed_once_in_a_step(self, kind, plain, config, monkeypatch):
        env, counts = kind(config(), num_envs=5, seed=3), []
        root, observe = env.reset(), env.observe
        monkeypatch.setattr(env, "observe", lambda state: counts.append(len(state)) or observe(state))
        for number in range(1, 40):
            stepped, root = env.step_and_maybe_reset(env.rand_action(root))
            assert len(counts) == number
            assert counts[-1] == 5 + int(stepped["next", "done"].sum())
        assert max(counts) > 5

    def test_all_worlds_may_be_done_at_once(self, kind, plain, config):
        envs = [each(config(max_steps=1), num_envs=5, seed=3) for each in (kind, plain)]
        found = []
        for env in envs:
            root = env.reset()
            torch.manual_seed(1)
            for _ in range(3):
                stepped, root = env.step_and_maybe_reset(env.rand_action(root))
            found.append((stepped, root))
        assert found[0][0]["next", "done"].all()
        assert same(found[0][0], found[1][0])
        assert same(found[0][1], found[1][1])

    def test_transforms_and_held_back_worlds_take_the_plain_way(self, kind, plain, config):
        env = TransformedEnv(kind(config(), num_envs=5, seed=3), StepCounter())
        batch = env.rollout(60, break_when_any_done=False)
        assert torch.equal(batch["step_count"].squeeze(-1), batch["state", "step"])
        env, other = (each(config(), num_envs=5, seed=3) for each in (kind, plain))
        stepped = torch.tensor([True, False, True, False, False]).unsqueeze(-1)
        torch.manual_seed(0)
        root = midway(env)
        torch.manual_seed(0)
        pairs = [
            each.step_and_maybe_reset(start.set("_step", stepped))
            for each, start in ((env, root), (other, midway(other)))
        ]
        assert same(pairs[0][0]["next"], pairs[1][0]["next"])


class TestResets:
    @given(st.lists(st.booleans(), min_size=5, max_size=5), st.booleans(), st.booleans())
    def test_a_reset_keeps_to_its_rows(self, chosen, with_agents, whole_root):
        env = (patrol if with_agents else walk)()
        root, chosen = midway(env), torch.tensor(chosen)
        given_root = root.copy() if whole_root else root.select("state", "done")
        after = env.reset(given_root.set("_reset", chosen.unsqueeze(-1)))
        assert same(
            after.select("state", "graph", "metrics")[~chosen],
            root.select("state", "graph", "metrics")[~chosen],
        )
        assert not after["state", "step"][chosen].any()
        assert not after["done"].any()

    @pytest.mark.parametrize("make", [walk, patrol])
    def test_a_reset_clears_the_flags_of_its_rows_alone(self, make):
        env = make()
        root, chosen = midway(env), torch.tensor([True, False, True, False, False])
        ended = torch.tensor([True, True, False, False, True]).unsqueeze(-1)
        for name, flag in (("done", ended), ("terminated", ended), ("truncated", ~ended)):
            root[name] = flag
        for given_root in (root.copy(), root.select("state", "done", "terminated", "truncated")):
            after = env.reset(given_root.set("_reset", chosen.unsqueeze(-1)))
            assert not after["done"][chosen].any()
            assert torch.equal(after["done"][~chosen], ended[~chosen])
            assert torch.equal(after["terminated"][~chosen], ended[~chosen])
            assert torch.equal(after["truncated"], ~ended & ~chosen.unsqueeze(-1))

    def test_nothing_known_but_the_rows_gives_valid_worlds_everywhere(self):
        env = walk()
        chosen = torch.tensor([False, True, False, True, False])
        reset = env._reset(env.reset().empty().set("_reset", chosen.unsqueeze(-1)))
        assert reset["action_mask"].any(-1).all()

    @pytest.mark.parametrize("make", [walk, patrol])
    def test_only_ended_worlds_are_born_anew(self, make):
        env, ended = make(num_envs=32), 0
        root = env.reset()
        for _ in range(30):
            stepped, root = env.step_and_maybe_reset(env.rand_action(root))
            following, done = stepped["next"], stepped["next", "done"].squeeze(-1)
            names = set(following.keys()) - {"reward"}
            assert same(following.select(*names)[~done], root.select(*names)[~done])
            assert not root["state", "step"][done].any()
            assert not root["done"].any()
            ended += int(done.sum())
        assert ended > 32

    @pytest.mark.parametrize("make", [walk, patrol])
    def test_a_device_that_is_not_asked_resets_the_same_rows(self, make, monkeypatch):
        monkeypatch.setattr(GraphwalkEnv, "_can_sync", False)
        monkeypatch.setattr(PatrolEnv, "_can_sync", False)
        self.test_only_ended_worlds_are_born_anew(make)

    def test_only_as_many_worlds_are_spawned_as_needed(self, monkeypatch):
        env, counts = walk(num_envs=16), []
        spawn = env.spawn
        monkeypatch.setattr(env, "spawn", lambda count: counts.append(count) or spawn(count))
        root = env.reset()
        for _ in range(20):
            stepped, root = env.step_and_maybe_reset(env.rand_action(root))
            ended = int(stepped["next", "done"].sum())
            assert counts.pop() == ended or ended == 0
            counts.append(0)


class TestSeeds:
    def test_one_seed_one_set_of_instances(self):
        first, second = walk(seed=11).reset(), walk(seed=11).reset()
        assert same(first, second)
        env = walk(seed=4)
        env.rollout(9)
        env.set_seed(11)
        assert same(env.reset(), first)

    def test_another_seed_another_set(self):
        assert not torch.equal(
            walk(seed=1).reset()["state", "edge_index"], walk(seed=2).reset()["state", "edge_index"]
        )

    def test_no_seed_is_a_new_one_each_time(self):
        starts = [walk(seed=None, num_envs=20).reset()["state", "current"] for _ in range(2)]
        assert not torch.equal(*starts)

    def test_the_global_generator_is_left_alone(self):
        torch.manual_seed(5)
        before = torch.get_rng_state()
        env = walk()
        root = env.reset()
        for _ in range(50):
            first_legal = root["action_mask"].long().argmax(-1)
            _, root = env.step_and_maybe_reset(root.set("action", first_legal))
        assert torch.equal(torch.get_rng_state(), before)


class TestStages:
    def test_worlds_take_up_a_stage_when_they_are_born(self):
        env = walk(num_envs=64, num_nodes=4, max_nodes=12)
        root = env.reset()
        env.apply_stage(num_nodes=12)
        sizes = set()
        for _ in range(60):
            stepped, root = env.step_and_maybe_reset(env.rand_action(root))
            size = root["graph", "node_mask"].sum(-1)
            kept = ~stepped["next", "done"].squeeze(-1)
            assert torch.equal(size[kept], stepped["graph", "node_mask"].sum(-1)[kept])
            assert (size[~kept] == 12).all()
            sizes.add(tuple(size.unique().tolist()))
        assert (4, 12) in sizes
        assert env.config.num_nodes == 12
        assert env.built_with.num_nodes == 4
        env.apply_stage()
        assert env.config == env.built_with

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"num_nodes": 13}, "room"),
            ({"num_nodes": (9, 4)}, "low to high"),
            ({"max_steps": 3}, "cannot change max_steps"),
            ({"speed": 3}, "cannot change speed"),
        ],
    )
    def test_a_stage_that_cannot_be_is_refused_and_changes_nothing(self, settings, words):
        env = walk()
        with pytest.raises(ConfigError, match=words):
            env.apply_stage(**settings)
        assert env.config == env.built_with

    def test_the_stage_is_saved(self):
        env, other = walk(max_nodes=12), walk(seed=9, max_nodes=12)
        env.apply_stage(num_nodes=(6, 7))
        other.load_state_dict(env.state_dict())
        assert other.config.num_nodes == (6, 7)
        assert same(env.reset(), other.reset())


class TestAgents:
    def test_agents_end_one_by_one_and_the_world_with_the_last(self):
        env = patrol(num_envs=1, max_steps=100)
        root = env.reset()
        root["state", "place"], root["state", "active"] = (
            torch.tensor([[0, 2, 1, 2]]),
            torch.tensor([[1, 1, 1, 0]]).bool(),
        )
        right = torch.full((1, 4), 2)
        rewards, active, terminated, done = [], [], [], []
        for _ in range(3):
            following = env.step(root.set("action", right))["next"]
            root = env.step_mdp(root)
            rewards.append(following["reward"].flatten().tolist())
            active.append(following["agents", "active"].flatten().tolist())
            terminated.append(following["agents", "terminated"].flatten().tolist())
            done.append(
                (following["done"].item(), following["terminated"].item(), following["truncated"].item())
            )
        assert rewards == [[1, 3, 2, 0], [2, 0, 3, 0], [3, 0, 0, 0]]
        assert active == [[True, False, True, False], [True, False, False, False], [False] * 4]
        assert terminated == [
            [False, True, False, False],
            [False, True, True, False],
            [True, True, True, False],
        ]
        assert done == [(False,) * 3, (False,) * 3, (True, True, False)]

    def test_idle_agents_may_do_anything(self):
        mask = midway(patrol(num_envs=32))["action_mask"]
        root = midway(patrol(num_envs=32))
        assert root["action_mask"][~root["agents", "active"]].all()
        assert not mask.all()


def test_a_limit_met_by_a_world_that_ends_is_no_truncation():
    env = walk(num_envs=256, max_steps=1)
    following = env.step(env.rand_action(env.reset()))["next"]
    assert following["done"].all()
    assert 0 < following["terminated"].sum() < 256
    assert torch.equal(following["truncated"], ~following["terminated"])


def test_moving_to_a_device_keeps_the_seed(fake_device):
    env = make_env("graphwalk", num_envs=3, seed=12).to(fake_device)
    assert env.generator.initial_seed() == 12
    assert {value.device for value in env.reset().values(True, True)} == {fake_device}


def test_at_least_one_world():
    with pytest.raises(ConfigError, match="num_envs must be 1 or more, got 0"):
        walk(num_envs=0)
