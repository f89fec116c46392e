"""Successors as actions: the contract of a layout, as many as there are, and how they are drawn."""

import pytest
import torch
from tests.graphs.actions import contract

from edgewise.config.errors import ConfigError
from edgewise.models.build import make_head
from edgewise.systems.reasoning.actions import ChooseSuccessor


def test_the_contract_of_a_layout():
    layout = ChooseSuccessor(5)
    contract.check_shapes(layout)
    for lead in ((), (200,), (4, 50)):
        contract.check_samples(layout, None, lead)
    contract.check_wrong_actions(layout, None)


def test_only_as_many_successors_as_there_are():
    assert contract.legal(ChooseSuccessor(5), [0, 1, 2, -1]) == [True, True, False, False]


def test_a_successor_is_marked_by_its_number():
    layout = ChooseSuccessor(5)
    assert layout.marks(torch.tensor(3), contract.observation(layout)[0]).text == "successor 3"


def test_there_is_no_head():
    with pytest.raises(ConfigError, match="ChooseSuccessor has no head") as caught:
        make_head(contract.SPEC, ChooseSuccessor(4))
    assert "view: padded" in str(caught.value)
    with pytest.raises(ConfigError, match="ChooseSuccessor has no action values"):
        _ = ChooseSuccessor(4).features
