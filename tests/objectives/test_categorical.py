"""The projection of categorical returns against a loop over atoms: mass and mean are kept."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.objectives.categorical import cross_entropy, project_distribution


def by_loops(probability, support, reward, discount):
    """Atom by atom: its image, clipped, is shared between the two nearest by distance."""
    step = float(support[1] - support[0])
    image = torch.zeros_like(probability)
    for row in range(len(probability)):
        for atom in range(len(support)):
            value = float(reward[row] + discount[row] * support[atom])
            value = min(max(value, float(support[0])), float(support[-1]))
            for near in range(len(support)):
                share = max(0.0, 1 - abs(value - float(support[near])) / step)
                image[row, near] += probability[row, atom] * share
    return image


def drawn(rows, atoms, seed, *, spread):
    draw = torch.Generator().manual_seed(seed)
    probability = torch.rand(rows, atoms, generator=draw, dtype=torch.float64)
    probability = probability / probability.sum(-1, keepdim=True)
    reward = spread * torch.randn(rows, generator=draw, dtype=torch.float64)
    ended = torch.rand(rows, generator=draw) < 0.3
    discount = torch.full((rows,), 0.97, dtype=torch.float64).masked_fill(ended, 0.0)
    return probability, torch.linspace(-15, 60, atoms, dtype=torch.float64), reward, discount


@given(
    rows=st.integers(1, 4), atoms=st.integers(2, 12), seed=st.integers(0, 999), spread=st.floats(0.1, 80.0)
)
def test_it_is_the_loop_and_loses_no_mass(rows, atoms, seed, spread):
    probability, support, reward, discount = drawn(rows, atoms, seed, spread=spread)
    found = project_distribution(probability, support, reward=reward, discount=discount)
    torch.testing.assert_close(found, by_loops(probability, support, reward, discount), atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(found.sum(-1), torch.ones(rows, dtype=torch.float64))
    assert (found >= 0).all()


@given(atoms=st.integers(21, 60), seed=st.integers(0, 999))
def test_the_mean_is_that_of_the_image_where_nothing_is_cut_off(atoms, seed):
    probability, support, reward, discount = drawn(3, atoms, seed, spread=0.1)
    reward = reward.clamp(-0.3, 1.5)
    found = project_distribution(probability, support, reward=reward, discount=discount)
    wanted = reward + discount * (probability * support).sum(-1)
    torch.testing.assert_close((found * support).sum(-1), wanted, atol=1e-9, rtol=1e-9)


def test_an_image_on_an_atom_keeps_its_mass():
    """The planted fault of many a projection: floor and ceiling coincide and the mass is lost."""
    support = torch.linspace(0, 4, 5)
    probability = torch.tensor([[0.0, 1.0, 0.0, 0.0, 0.0]])
    found = project_distribution(
        probability, support, reward=torch.tensor([2.0]), discount=torch.tensor([1.0])
    )
    assert found.tolist() == [[0.0, 0.0, 0.0, 1.0, 0.0]]
    beyond = project_distribution(
        probability, support, reward=torch.tensor([99.0]), discount=torch.tensor([1.0])
    )
    assert beyond.tolist() == [[0.0, 0.0, 0.0, 0.0, 1.0]]


def test_cross_entropy_is_least_at_the_target():
    target = torch.tensor([[0.2, 0.3, 0.5]])
    least = cross_entropy(target.log(), target)
    torch.testing.assert_close(least, torch.distributions.Categorical(target).entropy())
    assert (cross_entropy(torch.randn(50, 3).log_softmax(-1), target.expand(50, 3)) >= least).all()


def test_the_projection_has_no_gradient():
    probability = torch.full((1, 5), 0.2, requires_grad=True)
    reward = torch.ones(1, requires_grad=True)
    found = project_distribution(probability, torch.linspace(0, 4, 5), reward=reward, discount=torch.ones(1))
    assert not found.requires_grad
