"""Priorities decide how often and how much: against a loop over sums, by chi-square and by formula."""

import bisect
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer

from edgewise.data import sum_tree
from edgewise.data.prioritised import PrioritisedSampler, TablePriorities, TreePriorities
from edgewise.data.sum_tree import SumTree

PRIORITY = st.one_of(st.just(0.0), st.floats(1e-6, 1e6))


class Stored:
    """A storage of which only the length matters."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size


def made(kind, capacity):
    return (
        TreePriorities(capacity) if kind is TreePriorities else TablePriorities(capacity, torch.device("cpu"))
    )


def brute_force(values, share):
    """The first index at which the running sum exceeds a share of the total."""
    running = list(itertools.accumulate(values))
    return bisect.bisect_right(running, share * running[-1])


@pytest.fixture
def _small_levels(monkeypatch):
    """A tree of many levels even for a few numbers."""
    monkeypatch.setattr(sum_tree, "FAN_OUT", 3)
    monkeypatch.setattr(sum_tree, "TOP", 4)


@pytest.mark.usefixtures("_small_levels")
@pytest.mark.parametrize("kind", [TreePriorities, TablePriorities])
@given(data=st.data())
def test_any_share_is_found_where_the_running_sum_has_it(kind, data):
    """Whole numbers, whose sums are exact in any order."""
    values = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=200).filter(sum))
    shares = data.draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20))
    table = made(kind, len(values))
    order = torch.from_numpy(np.random.default_rng(len(values)).permutation(len(values)))
    for part in order.split(7):
        table.set(part, torch.tensor(values, dtype=torch.float64)[part])
    found = table.find(torch.tensor(shares, dtype=torch.float64))
    total = sum(values)
    clear = [abs(share * total - round(share * total)) > 1e-9 for share in shares]
    expected = [brute_force(values, share) for share in shares]
    assert [index for index, sure in zip(found.tolist(), clear, strict=True) if sure] == [
        index for index, sure in zip(expected, clear, strict=True) if sure
    ]


@pytest.mark.usefixtures("_small_levels")
@pytest.mark.parametrize("kind", [TreePriorities, TablePriorities])
@given(
    values=st.lists(PRIORITY, min_size=1, max_size=150).filter(any),
    shares=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20),
)
def test_what_has_no_priority_is_never_found(kind, values, shares):
    table = made(kind, len(values) + 10)
    table.fill(torch.tensor(values, dtype=torch.float64))
    found = table.find(torch.tensor([*shares, 0.0, np.nextafter(1.0, 0.0)], dtype=torch.float64))
    assert (table.at(found) > 0).all()


@pytest.mark.usefixtures("_small_levels")
@given(
    changes=st.lists(
        st.tuples(
            st.lists(st.integers(0, 99), min_size=1, max_size=12),
            st.lists(PRIORITY, min_size=12, max_size=12),
        ),
        max_size=8,
    )
)
def test_a_tree_that_was_changed_is_the_tree_of_what_it_holds(changes):
    """Bit for bit, so that a resumed run draws the same; of several values for a place the largest holds."""
    changed, held = SumTree(100), np.zeros(100)
    for index, values in changes:
        values = values[: len(index)]
        changed.set(np.array(index), np.array(values))
        for place in set(index):
            held[place] = max(value for other, value in zip(index, values, strict=True) if other == place)
    anew = SumTree(100)
    anew.fill(held)
    assert all((one == other).all() for one, other in zip(changed._levels, anew._levels, strict=True))
    assert (changed.leaves == held).all()


def test_a_tree_of_a_million_has_few_levels_and_the_right_total():
    tree, draw = SumTree(1_000_000), np.random.default_rng(0)
    values = draw.random(1_000_000)
    tree.fill(values)
    assert len(tree._levels) == 3
    assert tree.total == pytest.approx(values.sum())
    share = draw.random(1000)
    running = values.cumsum()
    assert (np.abs(tree.find(share) - running.searchsorted(share * running[-1], side="right")) <= 1).all()


@pytest.mark.parametrize("kind", [TreePriorities, TablePriorities])
def test_of_an_item_named_twice_the_larger_priority_holds(kind):
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        table = made(kind, 5)
        index, value = torch.tensor([3, 3, 1]), torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
        table.set(index[order], value[order])
        assert table.values.tolist() == [0, 1, 0, 2, 0]


def sampler_of(priorities, *, alpha=0.6, beta=0.4, table=None, seed=0):
    """A sampler of these priorities; `table` may be planted."""
    sampler = PrioritisedSampler(len(priorities), alpha=alpha, beta=beta, floor=0.0)
    sampler._rng = torch.Generator().manual_seed(seed)
    sampler._table = sampler._table if table is None else table(len(priorities))
    every = torch.arange(len(priorities))
    sampler.extend(every)
    sampler.update_priority(every, torch.tensor(priorities))
    return sampler


PRIORITIES = [0.1, 1.0, 2.0, 4.0, 0.5, 7.0, 3.0, 1.5]


def p_value(sampler, *, alpha=0.6, draws=400, batch=64):
    """How probable the frequencies drawn are under P(i) = p^alpha / sum, by chi-square."""
    stored = Stored(len(PRIORITIES))
    drawn = torch.cat([sampler.sample(stored, batch)[0] for _ in range(draws)])
    counts = drawn.bincount(minlength=len(PRIORITIES)).numpy()
    expected = np.array(PRIORITIES) ** alpha
    return chisquare(counts, expected / expected.sum() * counts.sum()).pvalue


@pytest.mark.parametrize(
    "table", [TreePriorities, lambda capacity: TablePriorities(capacity, torch.device("cpu"))]
)
def test_frequencies_are_those_of_the_priorities(table):
    assert p_value(sampler_of(PRIORITIES, table=table)) > 1e-3


def test_frequencies_of_one_draw_at_a_time_are_too():
    """Without strata, so that a multinomial law is tested and not a narrower one."""
    assert p_value(sampler_of(PRIORITIES), draws=4000, batch=1) > 1e-3


def test_wrong_frequencies_show():
    """A tenth more or less of the exponent is seen."""
    assert p_value(sampler_of(PRIORITIES, alpha=0.7)) < 1e-6
    assert p_value(sampler_of(PRIORITIES, alpha=0.5)) < 1e-6


@given(
    priorities=st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=50),
    alpha=st.floats(0, 1),
    beta=st.floats(0, 1),
)
def test_weights_are_those_of_the_formula(priorities, alpha, beta):
    sampler = sampler_of(priorities, alpha=alpha, beta=beta)
    index, info = sampler.sample(Stored(len(priorities)), 16)
    raised = np.array(priorities) ** alpha
    weight = (len(priorities) * raised / raised.sum()) ** -beta
    chosen = weight[index.numpy()]
    assert info["priority_weight"].numpy() == pytest.approx(chosen / chosen.max(), rel=1e-4)
    assert sampler.probabilities.numpy() == pytest.approx(raised / raised.sum())


def test_beta_may_change_on_the_way():
    sampler = sampler_of(PRIORITIES, beta=0.0)
    assert (sampler.sample(Stored(8), 64)[1]["priority_weight"] == 1).all()
    sampler.beta = 1.0
    index, info = sampler.sample(Stored(8), 64)
    products = info["priority_weight"].double() * sampler.probabilities[index]
    assert torch.allclose(products, products[0].expand(64), rtol=1e-5)


def test_new_items_come_with_the_largest_priority_seen():
    sampler = PrioritisedSampler(10, alpha=1.0, floor=0.0)
    sampler.extend(torch.arange(2))
    sampler.update_priority(torch.tensor([0]), torch.tensor([5.0]))
    sampler.update_priority(torch.tensor([0]), torch.tensor([0.25]))
    sampler.add(2)
    sampler.extend(torch.tensor([3, 4]))
    assert sampler._table.values.tolist() == [0.25, 1, 5, 5, 5, 0, 0, 0, 0, 0]


def test_an_error_of_zero_is_not_forgotten():
    sampler = PrioritisedSampler(4, alpha=1.0)
    sampler.extend(torch.arange(4))
    sampler.update_priority(torch.arange(4), torch.zeros(4))
    index, info = sampler.sample(Stored(4), 16)
    assert index.unique().tolist() == [0, 1, 2, 3]
    assert info["priority_weight"].isfinite().all()


def buffer_of(sampler, size=100):
    storage = LazyTensorStorage(size)
    buffer = TensorDictReplayBuffer(
        storage=storage, sampler=sampler, batch_size=8, generator=torch.Generator().manual_seed(0)
    )
    buffer.extend(TensorDict({"x": torch.arange(60)}, [60]))
    return buffer


def test_it_serves_a_buffer_of_torchrl():
    buffer = buffer_of(PrioritisedSampler(100, alpha=1.0))
    drawn = buffer.sample()
    assert (drawn["x"] == drawn["index"]).all()
    buffer.update_priority(torch.tensor([5, 7]), torch.tensor([3.0, 9.0]))
    assert buffer.sampler._table.values[[5, 7]].tolist() == pytest.approx([3.0, 9.0], rel=1e-5)
    often = torch.cat([buffer.sample()["x"] for _ in range(200)]).bincount(minlength=60)
    assert often.argmax() == 7


def test_an_empty_storage_is_refused():
    with pytest.raises(RuntimeError, match="nothing has been stored yet"):
        PrioritisedSampler(4).sample(Stored(0), 2)


def test_it_goes_on_from_a_saved_state(tmp_path):
    first, second, third = (PrioritisedSampler(100) for _ in range(3))
    one = buffer_of(first)
    for _ in range(5):
        one.update_priority(one.sample()["index"], torch.rand(8))
    second.load_state_dict(first.state_dict())
    first.dumps(tmp_path / "priorities")
    third.loads(tmp_path / "priorities")
    for sampler in (first, second, third):
        sampler._rng = torch.Generator().manual_seed(7)
    drawn = [sampler.sample(one.storage, 32) for sampler in (first, second, third)]
    assert all(torch.equal(index, drawn[0][0]) for index, _ in drawn)
    assert all(torch.equal(info["priority_weight"], drawn[0][1]["priority_weight"]) for _, info in drawn)


def test_an_emptied_sampler_forgets():
    sampler = sampler_of(PRIORITIES)
    sampler._empty()
    assert sampler._table.values.sum() == 0
    assert sampler.state_dict()["priorities"].shape == (0,)


@pytest.mark.parametrize("seed", range(40))
def test_no_rounding_finds_a_leaf_without_priority(seed):
    """Priorities of sixteen orders of magnitude among zeros, and shares at the edges of every leaf."""
    generator = np.random.default_rng(seed)
    values = np.where(generator.random(2000) < 0.6, 0.0, 10.0 ** generator.uniform(-8, 8, 2000))
    tree = SumTree(2000)
    tree.set(np.arange(2000), values)
    edges = (values.cumsum() / values.sum())[values > 0]
    shares = np.concatenate((edges, np.nextafter(edges, 0.0), np.nextafter(edges, 2.0), [0.0, 1.0]))
    assert (values[tree.find(np.minimum(shares, 1.0))] > 0).all()


def test_a_share_that_rounds_to_one_finds_the_last_priority():
    """The last stratum of 256, and a draw just below one: their sum is 256 in float64."""
    share = (255 + np.nextafter(1.0, 0.0)) / 256
    assert share == 1.0
    for capacity in (40, 5000):
        tree = SumTree(capacity)
        tree.set(np.array([3, 17]), np.array([1.0, 2.0]))
        assert tree.find(np.array([share])).tolist() == [17]


@pytest.mark.parametrize("capacity", [3, 40, 5000])
def test_a_share_at_an_edge_finds_the_next_priority(capacity):
    tree = SumTree(capacity)
    tree.set(np.array([1, 2]), np.array([1.0, 1.0]))
    assert tree.find(np.array([0.0, 0.5])).tolist() == [1, 2]


def test_a_tree_that_is_filled_holds_nothing_else():
    tree = SumTree(2000)
    tree.set(np.array([3, 1500]), np.array([5.0, 7.0]))
    tree.fill(np.array([1.0, 2.0]))
    assert tree.total == 3.0
    assert np.flatnonzero(tree.leaves).tolist() == [0, 1]


def test_every_stratum_gives_one_item():
    """Of 64 equal priorities, a batch of 64 has each exactly once, and one of 32 one of every two."""
    sampler = PrioritisedSampler(64)
    sampler.extend(torch.arange(64))
    sampler._rng = torch.Generator().manual_seed(0)
    assert sampler.sample(Stored(64), 64)[0].tolist() == list(range(64))
    assert (sampler.sample(Stored(64), 32)[0] // 2).tolist() == list(range(32))
