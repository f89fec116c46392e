"""Workers import what this process may import, so tests of workers begin without plug-ins of other tests."""

import pytest
from tests.isolation import isolated


@pytest.fixture(autouse=True)
def without_plugins():
    with isolated():
        yield
