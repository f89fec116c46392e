"""Common random numbers: which draws are shared, and that groups of equal actions stay equal."""

import pytest
import torch
from tests.envs.test_hold import tanks

from edgewise.data.candidates import CANDIDATE, CandidateEpisodes
from edgewise.envs.common_random import CommonRandomNumbers

DRAWS = {
    "sizes": lambda generator: torch.rand(6, 4, generator=generator),
    "a tuple": lambda generator: torch.randn((6, 2), generator=generator),
    "by name": lambda generator: torch.rand(size=(6,), generator=generator),
    "integers below": lambda generator: torch.randint(1000, (6, 3), generator=generator),
    "integers between": lambda generator: torch.randint(5, 1000, (6, 3), generator=generator),
    "integers by name": lambda generator: torch.randint(low=5, high=1000, size=(6,), generator=generator),
}


@pytest.mark.parametrize("name", DRAWS)
def test_groups_get_the_numbers_of_the_first(name):
    generator = torch.Generator().manual_seed(3)
    with CommonRandomNumbers(generator, worlds=2, copies=3):
        drawn = DRAWS[name](generator)
    assert len(drawn) == 6
    assert len(drawn[:2].unique(dim=0)) == 2
    assert torch.equal(drawn[:2], drawn[2:4])
    assert torch.equal(drawn[:2], drawn[4:])


def test_other_draws_are_as_they_are():
    """Those of other generators, of other sizes, and of the time after."""
    generator, other = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    plain = torch.Generator().manual_seed(3)
    with CommonRandomNumbers(generator, worlds=2, copies=3):
        foreign, odd = torch.rand(6, generator=other), torch.rand(5, generator=generator)
    expected = torch.rand(6, generator=plain)
    assert torch.equal(foreign, expected)
    assert torch.equal(odd, expected[:5])
    assert len(torch.rand(6, generator=generator).unique()) == 6


def test_candidates_that_act_alike_have_equal_returns_and_others_have_not():
    """The environment draws at every step; only the actions of the third candidate differ."""
    env = tanks(hold=3, ends=False, num_envs=12)

    def opening(value):
        return lambda root: torch.full((len(root), 3), value)

    collector = CandidateEpisodes(
        env, torch.nn.Identity(), lambda seed: [opening(0.5), opening(0.5), opening(0.6)], candidates=3
    )
    batch = collector.collect()
    returns = batch["next", "reward"].reshape(-1)
    first, second, third = (returns[batch[CANDIDATE].reshape(-1) == number] for number in range(3))
    assert torch.equal(first, second)
    assert not torch.isclose(first, third).any()
    assert len(first.unique()) == len(first)
