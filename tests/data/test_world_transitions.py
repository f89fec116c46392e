"""Transitions of whole worlds: what a loop over worlds gives, signs of two players, few bytes."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from tensordict import TensorDict

from edgewise.data.replay_buffer import ReplayBuffer
from edgewise.data.transitions import Transitions, smallest_dtype

GAMMA = 0.9
NODES = 5


def played(seed, *, worlds=3, steps=12, agents=0, players=False):
    """`[worlds, steps]` of random episodes; `graph.x` holds the step, plus 0.5 for `next`, and the world."""
    draw = torch.Generator().manual_seed(seed)
    shape = (worlds, steps)
    done = torch.rand(*shape, 1, generator=draw) < 0.2
    terminated = done & (torch.rand(*shape, 1, generator=draw) < 0.5)
    reward = torch.randn(*shape, *([agents] if agents else []), 1, generator=draw)
    batch = TensorDict(
        {
            "graph": graph(shape, draw, 0.0),
            "action_mask": torch.rand(*shape, NODES, generator=draw) < 0.5,
            "action": torch.randint(NODES, shape, generator=draw),
            "next": {
                "graph": graph(shape, draw, 0.5),
                "action_mask": torch.rand(*shape, NODES, generator=draw) < 0.5,
                "reward": reward,
                "done": done,
                "terminated": terminated,
            },
        },
        shape,
    )
    if agents:
        batch["next", "agents", "terminated"] = torch.rand(*shape, agents, generator=draw) < 0.3
    if players:
        batch["player"] = torch.randint(2, shape, generator=draw)
        batch["next", "player"] = torch.cat((batch["player"][:, 1:], batch["player"][:, :1]), 1)
    return batch


def graph(shape, draw, ahead):
    world, step = torch.meshgrid(*map(torch.arange, shape), indexing="ij")
    x = torch.stack((step + ahead, world), -1).unsqueeze(-2).expand(*shape, NODES, 2)
    index = torch.randint(NODES, (*shape, 2, 4), generator=draw)
    return {"x": x.float(), "node_mask": torch.ones(*shape, NODES, dtype=torch.bool), "edge_index": index}


def one_by_one(batch, *, steps):
    """The oracle: transitions of worlds, followed step by step; world, first, last, return and discount."""
    after, found = batch["next"], []
    player = batch.get("player", torch.zeros(batch.shape, dtype=torch.int64))
    mover = after.get("player", player)
    for world in range(batch.shape[0]):
        for first in range(batch.shape[1]):
            total = 0.0
            for ahead in range(steps):
                here = first + ahead
                if here == batch.shape[1]:
                    break
                sign = 1 if player[world, here] == player[world, first] else -1
                total = total + sign * GAMMA**ahead * after["reward"][world, here, ..., 0]
                if after["done"][world, here] or ahead == steps - 1:
                    same = 1 if mover[world, here] == player[world, first] else -1
                    over = after["terminated"][world, here]
                    if ("agents", "terminated") in after.keys(True):
                        over = over | after["agents", "terminated"][world, here]
                    left = same * GAMMA ** (ahead + 1) * ~over.squeeze()
                    found.append((world, first, here, total.flatten().tolist(), left.flatten().tolist()))
                    break
    return sorted(found)


def told(samples):
    here, there = samples["observation", "graph", "x"][:, 0], samples["next_observation", "graph", "x"][:, 0]
    assert (here[:, 1] == there[:, 1]).all()
    rows = zip(here[:, 1], here[:, 0], there[:, 0] - 0.5, samples["reward"], samples["discount"], strict=True)
    return sorted(
        (int(world), int(first), int(last), reward.flatten().tolist(), discount.flatten().tolist())
        for world, first, last, reward, discount in rows
    )


def same(found, expected):
    def numbers(rows):
        return torch.tensor([[*row[3], *row[4]] for row in rows])

    return [row[:3] for row in found] == [row[:3] for row in expected] and torch.allclose(
        numbers(found), numbers(expected), atol=1e-5
    )


def maker(steps, **settings):
    return Transitions(["graph", "action_mask"], steps=steps, discount=GAMMA, **settings)


@given(
    seed=st.integers(0, 10_000),
    steps=st.integers(1, 5),
    agents=st.sampled_from([0, 2]),
    players=st.booleans(),
    parts=st.lists(st.integers(1, 6), min_size=1, max_size=4),
)
def test_batches_of_any_length_give_what_a_loop_over_worlds_gives(seed, steps, agents, players, parts):
    batch = played(seed, steps=sum(parts), agents=agents, players=players)
    make = maker(steps)
    found = [
        row for part in batch.split(parts, dim=1) for row in told(make.expand(make.stored(part.clone())))
    ]
    assert same(sorted(found), one_by_one(batch, steps=steps))


def test_planted_faults_show():
    """Mixed worlds, forgotten ends, and players whose change is not noticed."""
    expected = one_by_one(played(0, players=True), steps=3)

    def without(batch, *name):
        batch[name] = torch.zeros_like(batch[name])
        return batch

    make = maker(3)
    assert same(told(make.expand(make.stored(played(0, players=True)))), expected)
    for name in (("next", "done"), ("next", "terminated"), ("player",)):
        make = maker(3)
        assert not same(told(make.expand(make.stored(without(played(0, players=True), *name)))), expected), (
            name
        )


def test_a_game_that_was_given_up_between_batches_is_not_continued():
    """Its last steps bootstrap from where they were left, and no reward of the new game counts."""
    batch = played(4, steps=8)
    batch["next", "done"][:], batch["next", "terminated"][:] = False, False
    first, second = batch[:, :4].clone(), batch[:, 4:].clone()
    second["anew"] = torch.zeros(3, 4, dtype=torch.bool)
    second["anew"][1, 0] = True
    make = maker(3)
    found = told(make.expand(make.stored(first))) + told(make.expand(make.stored(second)))
    lasts = {(world, begin): last for world, begin, last, *_ in found}
    assert [lasts[1, begin] for begin in (2, 3)] == [3, 3]
    assert [lasts[0, begin] for begin in (2, 3)] == [4, 5]


def test_what_waits_survives_a_save():
    batch = played(3, steps=10)
    first, second = maker(4), maker(4)
    first.stored(batch[:, :5].clone())
    second.load_state_dict(first.state_dict())
    one, other = (make.stored(batch[:, 5:].clone()) for make in (first, second))
    assert (one == other).all()
    assert len(maker(4).stored(batch[:, 5:].clone())) < len(one)


def test_teams_share_the_sum_of_their_rewards():
    batch = played(5, agents=2)
    make = maker(1, team_reward=True)
    samples = make.expand(make.stored(batch))
    wanted = batch["next", "reward"].sum((-1, -2)).transpose(0, 1).flatten()
    torch.testing.assert_close(samples["reward"], wanted)
    ended = batch["next", "terminated"].squeeze(-1).transpose(0, 1).flatten()
    assert torch.equal(samples["discount"] == 0, ended)


def test_integers_take_few_bytes_and_come_back():
    batch = played(6)
    bounds = {("graph", "edge_index"): NODES, "action": NODES}
    plain, packed = maker(1), maker(1, bounds=bounds)
    wide, narrow = plain.stored(batch), packed.stored(batch)
    assert narrow["observation", "graph", "edge_index"].dtype == torch.uint8
    assert _bytes(wide) - _bytes(narrow) == 7 * (8 + 8 + 1)
    assert (plain.expand(wide) == packed.expand(narrow)).all()
    assert (smallest_dtype(256), smallest_dtype(257), smallest_dtype(1 << 16)) == (
        torch.uint8,
        torch.int16,
        torch.int32,
    )


def test_graphs_are_stored_in_a_file_too(tmp_path):
    batch, make = played(7), maker(2)
    stored = make.stored(batch)
    in_memory = ReplayBuffer(64, batch_size=8, seed=1)
    in_file = ReplayBuffer(64, batch_size=8, seed=1, storage="memmap", folder=tmp_path)
    for buffer in (in_memory, in_file):
        buffer.extend(stored)
    assert (make.expand(in_memory.sample()) == make.expand(in_file.sample())).all()
    assert in_memory.bytes_per_transition == in_file.bytes_per_transition == _bytes(stored)


def _bytes(stored):
    return sum(leaf[0].nbytes for leaf in stored.values(include_nested=True, leaves_only=True))
