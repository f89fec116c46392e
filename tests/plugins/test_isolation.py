"""What a test imports, registers and allows is undone."""

import sys

from edgewise.plugins import Address, register, registered, use_plugin
from edgewise.plugins.isolation import isolated
from edgewise.plugins.trust import is_allowed


def test_nothing_is_left(write):
    file = write("left_over.py", "import edgewise as ew\nVERB = ew.Verb('left', 'over', object)\n")
    path = list(sys.path)
    with isolated():
        use_plugin(str(file))
        register(use_plugin, kind="baseline", name="x.print")
        assert "left" in registered("verb")
        assert is_allowed(Address(str(file)))
    assert "left_over" not in sys.modules
    assert registered("verb") == registered("baseline") == {}
    assert not is_allowed(Address(str(file)))
    assert sys.path == path
