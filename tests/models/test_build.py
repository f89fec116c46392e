"""The head of an action layout: named by it, inherited by derived layouts, and missed with a hint."""

from dataclasses import dataclass

import pytest
from tests.models.worlds import explicit_spec

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionLayout, ChooseNode
from edgewise.models.build import make_head
from edgewise.models.config import ModelConfig
from edgewise.models.heads import ChooseNodeHead


class StopHead(ChooseNodeHead):
    """A head of one's own."""


@dataclass(frozen=True)
class ChooseStop(ChooseNode):
    """A layout derived from a built-in one."""


@dataclass(frozen=True)
class WithHead(ChooseNode):
    """A layout that names a head."""

    head = StopHead


def test_a_derived_layout_has_the_head_of_its_base_until_it_has_its_own():
    assert type(make_head(explicit_spec(), ChooseStop())) is ChooseNodeHead
    assert type(make_head(explicit_spec(), WithHead())) is StopHead
    assert type(make_head(explicit_spec(), ChooseNode())) is ChooseNodeHead


def test_layouts_without_a_head_are_refused_with_a_hint():
    class Strange(ActionLayout):
        """No head anywhere among its bases."""

        spec = mask_shape = sample = is_legal = None

    with pytest.raises(ConfigError, match="Strange has no policy head") as caught:
        make_head(explicit_spec(), Strange())
    assert "`Strange.head`" in str(caught.value)


def test_the_head_that_a_config_names_comes_before_that_of_the_layout(monkeypatch):
    asked = []
    monkeypatch.setattr("edgewise.models.build.find", lambda *words: asked.append(words) or StopHead)
    assert type(make_head(explicit_spec(), ChooseNode(), ModelConfig(head="mine.py:StopHead"))) is StopHead
    assert asked == [("head", "mine.py:StopHead")]
    assert type(make_head(explicit_spec(), ChooseNode(), ModelConfig(head="auto"))) is ChooseNodeHead
