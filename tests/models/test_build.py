"""The head of an action layout: registered once, inherited by derived layouts, and missed with a hint."""

from dataclasses import dataclass

import pytest
from tests.models.worlds import explicit_spec

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionLayout, ChooseNode, ChooseSuccessor
from edgewise.models.build import HEADS, make_head, register_head
from edgewise.models.config import ModelConfig
from edgewise.models.heads import ChooseNodeHead


@dataclass(frozen=True)
class ChooseStop(ChooseNode):
    """A layout derived from a built-in one."""


class StopHead(ChooseNodeHead):
    """A head for it."""


@pytest.fixture(autouse=True)
def _only_built_in(monkeypatch):
    monkeypatch.setattr("edgewise.models.build.HEADS", dict(HEADS))


def test_a_derived_layout_has_the_head_of_its_base_until_it_has_its_own():
    assert type(make_head(explicit_spec(), ChooseStop())) is ChooseNodeHead
    register_head(ChooseStop, StopHead)
    register_head(ChooseStop, StopHead)
    assert type(make_head(explicit_spec(), ChooseStop())) is StopHead
    assert type(make_head(explicit_spec(), ChooseNode())) is ChooseNodeHead


def test_a_second_head_for_one_layout_is_refused():
    with pytest.raises(ConfigError, match="ChooseNode has the head ChooseNodeHead") as caught:
        register_head(ChooseNode, StopHead)
    assert "subclass of ChooseNode" in str(caught.value)


def test_layouts_without_a_head_are_refused_with_a_hint():
    with pytest.raises(ConfigError, match="ChooseSuccessor has no head") as caught:
        make_head(explicit_spec(), ChooseSuccessor(4))
    assert "view: padded" in str(caught.value)

    class Strange(ActionLayout):
        """No head anywhere among its bases."""

        spec = mask_shape = sample = is_legal = None

    with pytest.raises(ConfigError, match="no head is registered for Strange") as caught:
        make_head(explicit_spec(), Strange())
    assert "register_head(Strange" in str(caught.value)


def test_the_head_that_a_config_names_comes_before_that_of_the_layout(monkeypatch):
    asked = []
    monkeypatch.setattr("edgewise.models.build.find", lambda *words: asked.append(words) or StopHead)
    assert type(make_head(explicit_spec(), ChooseNode(), ModelConfig(head="mine.py:StopHead"))) is StopHead
    assert asked == [("head", "mine.py:StopHead")]
    assert type(make_head(explicit_spec(), ChooseNode(), ModelConfig(head="auto"))) is ChooseNodeHead
