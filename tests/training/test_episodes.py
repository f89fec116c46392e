"""Episode returns across batches, against a count by hand, one world and one step at a time."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from tensordict import TensorDict

from edgewise.training.episodes import EpisodeMeter


def rollout(seed, *, worlds, steps, agents=0, game=False):
    """Random rewards and ends over `steps`; agents may leave but never come back within an episode."""
    generator = torch.Generator().manual_seed(seed)
    size = (worlds, steps)
    done = torch.rand(size, generator=generator) < 0.3
    content = {
        "next": {
            "done": done.unsqueeze(-1),
            "metrics": {"score": torch.rand(size, generator=generator)},
            "reward": torch.randn((*size, agents, 1) if agents else (*size, 1), generator=generator),
        }
    }
    if agents:
        active = torch.ones(*size, agents, dtype=torch.bool)
        present = torch.rand(worlds, agents, generator=generator) < 0.7
        for step in range(steps):
            active[:, step] = present
            born = torch.rand(worlds, agents, generator=generator) < 0.7
            left = torch.rand(worlds, agents, generator=generator) < 0.9
            present = torch.where(done[:, step].unsqueeze(-1), born, present & left)
        content["agents"] = {"active": active}
    if game:
        content["player"] = torch.randint(2, size, generator=generator)
    return TensorDict(content, batch_size=size)


def by_hand(batch, cuts):
    """Means over the episodes that end in each part of `batch`, cut at `cuts`."""
    worlds, steps = batch.batch_size
    ended = {part: [] for part in range(len(cuts) - 1)}
    active = batch.get(("agents", "active"), None)
    player = batch.get("player", None)
    for world in range(worlds):
        total, length, agents = 0.0, 0, None
        for step in range(steps):
            reward = batch["next", "reward"][world, step].double()
            if active is not None:
                here = active[world, step]
                agents = int(here.sum()) if agents is None else agents
                reward = (reward.squeeze(-1) * here).sum()
            reward = float(reward)
            total += -reward if player is not None and player[world, step] == 1 else reward
            length += 1
            if batch["next", "done"][world, step]:
                part = next(index for index in ended if cuts[index] <= step < cuts[index + 1])
                score = float(batch["next", "metrics", "score"][world, step])
                ended[part].append((total / max(agents or 1, 1), length, score))
                total, length, agents = 0.0, 0, None
    return ended


@given(
    seed=st.integers(0, 2**20),
    worlds=st.integers(1, 4),
    parts=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    agents=st.integers(0, 3),
    game=st.booleans(),
)
def test_means_over_the_episodes_that_end(seed, worlds, parts, agents, game):
    cuts = [sum(parts[:index]) for index in range(len(parts) + 1)]
    batch = rollout(seed, worlds=worlds, steps=cuts[-1], agents=agents, game=game)
    meter = EpisodeMeter()
    for part, expected in by_hand(batch, cuts).items():
        resumed = EpisodeMeter()
        resumed.load_state_dict(meter.state_dict())
        meter = resumed
        found = meter.update(batch[:, cuts[part] : cuts[part + 1]])
        assert int(found["episodes"]) == len(expected)
        if expected:
            means = torch.tensor(expected, dtype=torch.float64).mean(0)
            got = torch.stack([found["return"], found["length"], found["score"]])
            torch.testing.assert_close(got, means, rtol=1e-9, atol=1e-9)
        else:
            assert found["return"].isnan()


def test_a_world_that_begins_anew_has_nothing_from_before():
    meter = EpisodeMeter()
    batch = rollout(0, worlds=2, steps=3)
    batch["next", "done"] = torch.tensor([[False, False, False]] * 2).unsqueeze(-1)
    meter.update(batch)
    batch["next", "done"] = torch.tensor([[False, True, False]] * 2).unsqueeze(-1)
    batch["anew"] = torch.tensor([[True, False, False], [False, False, False]])
    found, reward = meter.update(batch), batch["next", "reward"].squeeze(-1).double()
    assert float(found["length"]) == (2 + 5) / 2
    expected = (reward[0, :2].sum() + reward[1].sum() + reward[1, :2].sum()) / 2
    torch.testing.assert_close(found["return"], expected)


def test_what_a_checkpoint_put_on_the_cpu_goes_on_on_another_device(fake_device):
    def batch(device):
        following = {"done": torch.zeros(2, 3, 1, dtype=torch.bool), "reward": torch.zeros(2, 3, 1)}
        return TensorDict({"next": following}, batch_size=[2, 3]).to(device)

    meter = EpisodeMeter()
    meter.update(batch("cpu"))
    assert meter.update(batch(fake_device))["length"].device == fake_device
