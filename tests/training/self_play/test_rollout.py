"""Self-play: replies belong to the learner's step, seats and opponents are what they should be, resumes."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tensordict import TensorDict

from edgewise.config.errors import ConfigError
from edgewise.envs.registry import make_env
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.hex.baselines import shortest_way
from edgewise.training.episodes import EpisodeMeter
from edgewise.training.self_play.pool import OpponentPool
from edgewise.training.self_play.rollout import SelfPlayRollout

SMALL = ModelConfig(shared_trunk=True, encoder=EncoderConfig(kind="gnn", conv="SAGEConv", hidden=8, layers=1))


def make_rollout(*, share=0.5, seed=0, steps=6, **settings):
    env = make_env("hex", size=(3, 4), opening_plies=1, num_envs=16, seed=seed)
    torch.manual_seed(seed)
    actor = make_actor_critic(env.graph, env.actions, SMALL).actor
    return SelfPlayRollout(
        env, actor, rollout_length=steps, share=share, snapshot_every=2, pool_size=3, **settings
    )


def stones(graph):
    """How many stones are mine and how many theirs, of the cells alone."""
    return graph["x"][..., :-4, :2].sum(-2)


def test_against_snapshots_the_learner_moves_every_time_from_its_own_seat():
    rollout = make_rollout(share=1.0)
    batch = rollout.collect()
    seat = torch.arange(16) % 2
    assert (batch["player"] == seat.unsqueeze(-1)).all()
    going_on = ~batch["next", "done"].squeeze(-1)
    gained = stones(batch["next", "graph"]) - stones(batch["graph"])
    assert (gained[going_on] == 1).all()
    assert (batch["next", "player"][going_on] == batch["player"][going_on]).all()


def test_a_game_ends_with_the_learners_win_or_with_the_reply_that_beats_it():
    batch = make_rollout(share=1.0, steps=24).collect()
    done = batch["next", "done"].squeeze(-1)
    reward = batch["next", "reward"].squeeze(-1)
    assert set(reward[done].tolist()) == {1.0, -1.0}
    assert (reward[~done] == 0).all()
    first_won = batch["next", "metrics", "first_player_won"][done] == 1
    learner_won = reward[done] == 1
    assert torch.equal(first_won == (batch["player"][done] == 0), learner_won)


def test_games_against_snapshots_begin_anew_in_the_meter_too():
    rollout, meter = make_rollout(share=1.0, steps=4), EpisodeMeter()
    lengths = [float(meter.update(rollout.collect())["length"]) for _ in range(6)]
    assert max(lengths) <= 4


def test_against_itself_players_take_turns():
    batch = make_rollout(share=0.0).collect()
    going_on = ~batch["next", "done"].squeeze(-1)
    assert (batch["next", "player"][going_on] == 1 - batch["player"][going_on]).all()
    assert (batch["next", "reward"] >= 0).all()


def test_baselines_are_opponents_whose_games_continue():
    """The learner meets both baselines from both seats, in games that go on from batch to batch."""
    met = {"one": [], "two": []}

    def player(name):
        def policy(root):
            met[name].append(root["player"])
            return rollout.env.rand_action(root)

        return policy

    rollout = make_rollout(
        share=0.25, steps=3, baselines={name: player(name) for name in met}, baseline_share=0.5
    )
    first, second = rollout.collect(), rollout.collect()
    rows = torch.arange(16)
    mirror, fixed, pool = rows < 4, (rows >= 4) & (rows < 12), rows >= 12
    for batch in (first, second):
        assert (batch["player"] == (rows % 2).unsqueeze(-1))[~mirror].all()
        assert torch.equal(batch["anew"].any(-1), pool)
    going_on = ~first["next", "done"][:, -1].squeeze(-1)
    assert (going_on & fixed).any()
    after, before = first["next", "graph", "x"][:, -1], second["graph", "x"][:, 0]
    same = (after == before).flatten(1).all(-1)
    assert same[going_on & ~pool].all()
    assert not same[going_on & pool].any()
    for players in met.values():
        assert set(torch.cat(players).tolist()) == {0, 1}
        assert max(len(each) for each in players) <= 4


def test_a_truncated_game_counts_as_drawn_whatever_its_last_reward():
    rollout = make_rollout(share=1.0, opponents=1)
    done = torch.tensor([True, True, True, False] * 4).unsqueeze(-1)
    following = TensorDict(
        {
            "done": done,
            "terminated": torch.tensor([True, True, False, False] * 4).unsqueeze(-1),
            "reward": torch.tensor([1.0, -1.0, 0.2, 0.2] * 4).unsqueeze(-1),
        },
        [16],
    )
    assert rollout._results(following).tolist() == [[6.0, 12.0]]


def test_scores_against_baselines_are_reported():
    way = shortest_way(make_env("hex", size=(3, 4)))
    rollout = make_rollout(share=0.0, steps=24, baselines={"way": way}, baseline_share=1.0)
    batch = rollout.collect()
    done = batch["next", "done"].squeeze(-1)
    points = (batch["next", "reward"].squeeze(-1)[done] + 1) / 2
    assert rollout.metrics()["score_way"] == pytest.approx(float(points.mean()))


def test_steps_follow_each_other():
    batch = make_rollout(share=0.5, steps=12).collect()
    going_on = ~batch["next", "done"].squeeze(-1)[:, :-1]
    after, before = batch["next", "graph", "x"][:, :-1], batch["graph", "x"][:, 1:]
    assert torch.equal(after[going_on], before[going_on])


def test_snapshots_begin_new_games_in_the_ply_of_their_replies(monkeypatch):
    """Only games that a reply has ended wait for another ply."""
    rollout, more = make_rollout(share=1.0, steps=24), []
    with_reply = rollout._with_reply

    def recorded(*arguments):
        step, root = with_reply(*arguments)
        waiting = rollout._opponent_to_move(root)
        more.append((step["next", "reward"][waiting] == -1).flatten())
        return step, root

    monkeypatch.setattr(rollout, "_with_reply", recorded)
    won = (rollout.collect()["next", "reward"] == 1).any()
    assert won
    assert torch.cat(more).all()
    assert torch.cat(more).any()


def test_results_are_counted_where_they_belong():
    rollout = make_rollout(share=1.0, steps=24, opponents=1)
    batch = rollout.collect()
    done = batch["next", "done"].squeeze(-1)
    points = ((batch["next", "reward"].squeeze(-1)[done] + 1) / 2).sum()
    place = int(rollout.pool.taken.argmax())
    rows = int(done.sum())
    assert rollout.pool.games[place] == rows
    assert rollout.pool.points[place] == points


def test_snapshots_stay_as_they_were_taken():
    rollout = make_rollout()
    rollout.collect()
    with torch.no_grad():
        before = copy.deepcopy(rollout.policy.state_dict())
        for parameter in rollout.policy.parameters():
            parameter.add_(1.0)
    frozen = rollout.pool.player(int(rollout.pool.taken.argmax()), like=rollout.policy).state_dict()
    assert all(torch.equal(frozen[name], before[name]) for name in before)


def test_a_killed_run_goes_on_bit_for_bit_with_its_pool():
    one = make_rollout(matchmaking="hard")
    for _ in range(4):
        one.collect()
    state = copy.deepcopy(one.state_dict())
    other = make_rollout(matchmaking="hard", seed=5)
    other.policy.load_state_dict(one.policy.state_dict())
    other.load_state_dict(state)
    for _ in range(3):
        torch.manual_seed(3)
        expected = one.collect().clone()
        torch.manual_seed(3)
        found = other.collect()
        assert (found == expected).all()
    assert torch.equal(one.pool.points, other.pool.points)
    assert torch.equal(one.pool.taken, other.pool.taken)


def filled(points, games):
    pool = OpponentPool(torch.nn.Linear(1, 1), size=len(points) + 1)
    for batch, (won, played) in enumerate(zip(points, games, strict=True)):
        place = pool.add(torch.nn.Linear(1, 1), batch=batch)
        pool.points[place], pool.games[place] = won, played
    return pool


def test_odds_are_those_of_prioritised_self_play():
    pool = filled([9.5, 4.5, 0.5], [9, 9, 9])
    x = torch.tensor([1.0, 0.5, 0.1])
    assert torch.allclose(pool.scores[:3], x)
    expected = {
        "latest": torch.tensor([0.0, 0.0, 1.0]),
        "uniform": torch.ones(3),
        "hard": (1 - x) ** 2,
        "variance": x * (1 - x),
    }
    for name, weights in expected.items():
        assert torch.allclose(pool.odds(name)[:3], weights / weights.sum()), name
        assert pool.odds(name)[3] == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_places_without_a_snapshot_are_never_drawn(shares):
    pool = filled([20 * share for share in shares], [20] * len(shares))
    for name in ("latest", "uniform", "hard", "variance"):
        odds = pool.odds(name)
        assert odds[-1] == 0
        assert float(odds.sum()) == pytest.approx(1, abs=1e-5)


def test_the_oldest_snapshot_gives_way():
    pool = OpponentPool(torch.nn.Linear(1, 1), size=2)
    places = [pool.add(torch.nn.Linear(1, 1), batch=batch) for batch in range(3)]
    assert places[2] == places[0]
    assert sorted(pool.taken.tolist()) == [1, 2]


class Dial(torch.nn.Module):
    """Plays the shortest way where its one number says so, and any cell elsewhere."""

    def __init__(self, env):
        super().__init__()
        self.skill, self.clever = torch.nn.Parameter(torch.tensor(0.0)), shortest_way(env)

    def forward(self, root):
        clever, any_cell = (policy(root.copy())["action"] for policy in (self.clever, any_free))
        use = torch.rand(len(clever)) < self.skill
        return root.set("action", torch.where(use, clever, any_cell))


def any_free(root):
    mask = root["action_mask"]
    return root.set("action", (torch.rand(mask.shape) * mask).argmax(-1))


def gated(*, gate=0.05, games=256):
    env = make_env("hex", size=3, opening_plies=1, num_envs=32, seed=0)
    dial = Dial(env)
    return SelfPlayRollout(
        env, dial, rollout_length=1, share=0.5, snapshot_every=1, gate=gate, gate_games=games
    )


def test_the_gate_keeps_an_equal_out_and_lets_a_better_player_in():
    torch.manual_seed(0)
    rollout = gated()
    for _ in range(4):
        rollout.collect()
    assert (rollout.pool.count, rollout.refused) == (1, 3)
    rollout.policy.skill.data.fill_(1.0)
    rollout.collect()
    assert (rollout.pool.count, rollout.refused) == (2, 3)
    assert rollout.metrics()["refused"] == 3.0


def test_without_a_gate_everyone_gets_in():
    rollout = gated(gate=None)
    for _ in range(3):
        rollout.collect()
    assert (rollout.pool.count, rollout.refused) == (3, 0)


def test_asking_the_gate_leaves_the_games_under_way_alone():
    """The same games follow, whether or not a match was played in between."""
    torch.manual_seed(1)
    rollout = gated(games=32)
    rollout.collect()
    kept, random = rollout.env.state_dict()["generator"], torch.get_rng_state()
    rollout._take_snapshot()
    assert torch.equal(rollout.env.state_dict()["generator"], kept)
    assert torch.equal(torch.get_rng_state(), random)
    assert rollout.refused == 1


def test_a_gate_needs_pairs():
    env = make_env("hex", size=3, num_envs=3, seed=0)
    with pytest.raises(ConfigError, match="even"):
        SelfPlayRollout(env, Dial(env), rollout_length=1, share=0.0, gate=0.05)


def rise(pool, generator, *, by, batches, games=400):
    """Take snapshots of a learner that gains `by` points each time, and tell the pool its true results."""
    for batch in batches:
        for place in (pool.taken >= 0).nonzero().flatten().tolist():
            gap = by * (batch - int(pool.taken[place]))
            wins = generator.random(games) < 1 / (1 + 10 ** (-gap / 400))
            pool.record(place, points=float(wins.sum()), games=games)
        pool.add(torch.nn.Linear(1, 1), batch=batch)


def test_ratings_of_snapshots_are_found_again_even_after_the_first_are_gone():
    pool = OpponentPool(torch.nn.Linear(1, 1), size=4)
    rise(pool, np.random.default_rng(0), by=70.0, batches=range(7))
    expected = 70.0 * pool.taken.double()
    assert sorted(pool.taken.tolist()) == [3, 4, 5, 6]
    assert (pool.ratings - expected).abs().max() < 45


def test_ratings_come_back_with_the_pool():
    pool, other = (OpponentPool(torch.nn.Linear(1, 1), size=4) for _ in range(2))
    rise(pool, np.random.default_rng(1), by=50.0, batches=range(5))
    other.load_state_dict(copy.deepcopy(pool.state_dict()))
    for one in (pool, other):
        rise(one, np.random.default_rng(2), by=50.0, batches=range(5, 7))
    assert torch.equal(pool.ratings, other.ratings)


def test_results_against_a_snapshot_fade_and_go_with_it():
    pool = OpponentPool(torch.nn.Linear(1, 1), size=2)
    first = pool.add(torch.nn.Linear(1, 1), batch=0)
    assert pool.scores[first] == 0.5
    pool.record(first, points=3.0, games=4)
    assert pool.scores[first].item() == pytest.approx(3.5 / 5)
    pool.record(first, points=0.0, games=2)
    assert pool.points[first].item() == pytest.approx(3 * 0.99**2)
    assert pool.games[first].item() == pytest.approx(4 * 0.99**2 + 2)
    second = pool.add(torch.nn.Linear(1, 1), batch=1)
    assert second != first
    assert pool.newest == second
    assert pool.add(torch.nn.Linear(1, 1), batch=2) == first
    assert (pool.points[first], pool.games[first]) == (0, 0)


def test_a_player_has_the_weights_of_its_own_snapshot():
    policies = [torch.nn.Linear(1, 1) for _ in range(3)]
    pool = OpponentPool(policies[0], size=3)
    slots = [pool.add(policy, batch=number) for number, policy in enumerate(policies)]
    for slot, policy in zip(slots, policies, strict=True):
        assert torch.equal(pool.player(slot, like=policies[0]).weight, policy.weight)


def test_games_against_snapshots_begin_anew_in_every_batch():
    """One stone of the opening and one of the snapshot at most, however many batches were played."""
    rollout = make_rollout(share=1.0, steps=1)
    for _ in range(4):
        assert stones(rollout.collect()["graph"][:, 0]).sum(-1).max() <= 2
