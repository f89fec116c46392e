"""Whole episodes beside worlds that are stepped one at a time."""

import pytest
import torch

from edgewise.config.errors import ConfigError
from edgewise.data.episodes import INSTANCE, PROPOSAL, EpisodeRollout, play_episodes
from edgewise.data.random_policy import RandomPolicy
from edgewise.envs.registry import make_env
from edgewise.graphs.legal_choices import legal_choices

WORLDS, SLOW = 5, 2


def walk(num_envs=WORLDS, **settings):
    return make_env("graphwalk", num_envs=num_envs, seed=0, **{"num_nodes": 6, "max_steps": 9, **settings})


def first_legal(root):
    """The legal node with the lowest number, in every world."""
    return root.set("action", root["action_mask"].long().argmax(-1))


def test_episodes_are_those_of_worlds_stepped_alone():
    env = walk()
    roots = env.reset()
    steps, counted = play_episodes(env, first_legal, roots, longest=50)
    assert steps.batch_size == counted.shape
    assert steps.batch_size[1] == int(counted.sum(1).max())
    for world in range(WORLDS):
        root, length = roots[world : world + 1], 0
        while True:
            following = env.simulate(first_legal(root.copy()))
            taken = steps[world, length]
            assert bool(counted[world, length])
            torch.testing.assert_close(taken["next", "reward"], following["reward"][0])
            assert taken["action"] == root["action_mask"].long().argmax(-1)[0]
            length += 1
            if bool(following["done"]):
                break
            root = following
        assert int(counted[world].sum()) == length
        assert bool(steps[world, length - 1]["next", "done"])
        assert not counted[world, length:].any()
    assert {"state"}.isdisjoint(steps.keys())
    assert set(steps["next"].keys()) == {"reward", "done", "terminated", "truncated", "metrics"}


def test_the_first_action_is_given_with_its_probability():
    env = walk()
    roots = env.reset()
    legal = legal_choices(env.actions, roots, env.graph)
    last = legal.shape[-1] - 1 - legal.flip(-1).long().argmax(-1)
    drawn = 1 / legal.sum(-1)
    steps, counted = play_episodes(env, first_legal, roots, first=last, proposal=drawn, longest=50)
    assert steps["action"][:, 0].equal(last)
    assert steps[PROPOSAL][:, 0].equal(drawn)
    assert not steps[PROPOSAL][:, 1:].any()
    assert counted[:, 0].all()
    assert {PROPOSAL}.isdisjoint(play_episodes(env, first_legal, roots, longest=50)[0].keys())


def test_a_time_limit_counts_as_an_end():
    env = walk(max_steps=2)
    steps, counted = play_episodes(env, first_legal, env.reset(), longest=50)
    assert steps.batch_size[1] <= 2
    assert steps["next", "done"][torch.arange(WORLDS), counted.sum(1) - 1].all()


class Endless:
    """An environment without a time limit whose episodes do not end."""

    def __init__(self, env):
        self.inner, self.max_steps = env, None

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def simulate(self, root):
        found = self.inner.simulate(root)
        running = found["done"].clone()
        running[SLOW:] = False
        running[:SLOW] = True
        return found.set("done", running)


def test_episodes_that_do_not_end_are_refused_by_their_number():
    env = Endless(walk())
    with pytest.raises(ConfigError, match=f"{WORLDS - SLOW} of {WORLDS} episodes did not end within 4 steps"):
        play_episodes(env, first_legal, env.reset(), longest=4)


def test_rounds_are_added_until_there_are_enough_steps():
    env = walk(num_envs=6)
    policy = RandomPolicy(env.actions, env.graph, seed=0)
    rollout = EpisodeRollout(env, policy, rollout_length=20, starts=3)
    batch = rollout.collect()
    assert rollout.num_instances == 2
    assert batch.batch_size[0] == 1
    done = batch["next", "done"].squeeze(-1)[0]
    instance = batch[INSTANCE][0]
    episodes = int(done.sum())
    assert episodes % 6 == 0
    assert episodes > 6
    assert instance.max() + 1 == episodes // 3
    ends = instance[done]
    assert torch.bincount(ends).eq(3).all()
    assert ends.equal(ends.sort().values)


def test_episodes_of_an_instance_begin_alike_with_different_actions():
    env = walk(num_envs=8)
    policy = RandomPolicy(env.actions, env.graph, seed=0)
    batch = EpisodeRollout(env, policy, starts=2, different=True).collect()
    done = batch["next", "done"].squeeze(-1)[0]
    begins = torch.cat((torch.tensor([True]), done[:-1]))
    first = batch[0][begins]
    for one, other in zip(first[::2], first[1::2], strict=True):
        assert one[INSTANCE] == other[INSTANCE]
        torch.testing.assert_close(one["graph", "x"], other["graph", "x"], equal_nan=True)
        legal = int(one["action_mask"].sum())
        assert legal == 1 or one["action"] != other["action"]
        assert one[PROPOSAL] == pytest.approx(1 / legal)
        assert bool(one["action_mask"][one["action"]])


def test_views_of_an_instance_are_symmetric_and_share_its_episodes():
    env = make_env("tsp", num_envs=24, seed=0, num_cities=6)
    policy = RandomPolicy(env.actions, env.graph, seed=0)
    batch = EpisodeRollout(env, policy, starts=12, symmetries=4, different=True).collect()
    places, steps = batch["graph", "pos"].view(2, 4, 6, 2), batch["steps"]
    for views in places:
        apart = torch.cdist(views, views)
        torch.testing.assert_close(apart, apart[:1].expand_as(apart))
        assert all(not torch.allclose(views[one], views[two]) for one in range(4) for two in range(one))
    assert steps.batch_size == (8, 3 * 6)
    assert steps[INSTANCE].equal(torch.arange(2).repeat_interleave(4).unsqueeze(-1).expand(8, 18))
    first = steps["action"].view(8, 3, 6)[:, :, 0]
    assert all(len(set(row.tolist())) == 3 for row in first)
    plain = EpisodeRollout(env, policy, starts=12, different=True).collect()
    assert plain.batch_size == (2,)


def test_views_that_do_not_exist_or_do_not_fit_are_refused():
    env, alone = walk(num_envs=8), make_env("tsp", num_envs=6, seed=0, num_cities=6)
    policy = RandomPolicy(env.actions, env.graph, seed=0)
    with pytest.raises(ConfigError, match="symmetries: got 2, but the environment has 1"):
        EpisodeRollout(env, policy, starts=8, symmetries=2)
    with pytest.raises(ConfigError, match="num_envs: got 6, which leaves 6 episodes of an instance to its 4"):
        EpisodeRollout(alone, policy, starts=8, symmetries=4)


def test_starts_are_at_most_the_worlds():
    env = walk(num_envs=3)
    policy = RandomPolicy(env.actions, env.graph, seed=0)
    assert EpisodeRollout(env, policy, starts=50).starts == 3
    alone = walk(num_envs=1)
    with pytest.raises(ConfigError, match="num_envs: got 1, expected 2 or more: 2 episodes"):
        EpisodeRollout(alone, policy, starts=2)
    assert EpisodeRollout(alone, policy, starts=1).num_instances == 1


def test_a_state_gives_the_same_batch_again():
    env = walk(num_envs=4)
    rollout = EpisodeRollout(env, RandomPolicy(env.actions, env.graph, seed=0), starts=2)
    state = rollout.state_dict()
    one = rollout.collect()
    rollout.policy = RandomPolicy(env.actions, env.graph, seed=0)
    rollout.load_state_dict(state)
    again = rollout.collect()
    assert one["action"].equal(again["action"])
    assert one["graph", "x"].nan_to_num().equal(again["graph", "x"].nan_to_num())


def test_the_check_leaves_the_generator_as_it_was():
    env, other = walk(), walk()
    EpisodeRollout(env, RandomPolicy(env.actions, env.graph, seed=0), starts=2)
    assert env.reset()["graph", "x"].nan_to_num().equal(other.reset()["graph", "x"].nan_to_num())


def test_actions_that_cannot_be_listed_are_refused():
    env = make_env("swarm", num_envs=4, seed=0, continuous=True)
    with pytest.raises(ConfigError, match="first_actions: got different"):
        EpisodeRollout(env, RandomPolicy(env.actions, env.graph, seed=0), different=True)
