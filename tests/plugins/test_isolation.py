"""What a test imports, registers and allows is undone."""

import sys

from tests.isolation import isolated

from edgewise.plugins import Address, registered, use_plugin
from edgewise.plugins.trust import is_allowed


def test_nothing_is_left(write):
    file = write("left_over.py", "import edgewise as ew\nSYSTEM = ew.System('left')\n")
    path = list(sys.path)
    with isolated():
        use_plugin(str(file))
        assert "left" in registered("system")
        assert is_allowed(Address(str(file)))
    assert "left_over" not in sys.modules
    assert registered("system") == {}
    assert not is_allowed(Address(str(file)))
    assert sys.path == path
