"""Model settings: torch-free, and mistakes said in the user's words."""

import subprocess
import sys

import pytest
from pydantic import ValidationError

from edgewise.models.config import EncoderConfig, ModelConfig


def test_importing_the_settings_does_not_import_torch():
    code = "import sys, edgewise.models.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": 10, "heads": 4}, "hidden=10 is not a multiple of heads=4"),
        ({"kind": "gnn", "conv": "GATConv", "hidden": 10}, "hidden=10 is not a multiple of heads=4"),
        ({"part_size": 0}, "greater than or equal to 1"),
        ({"layer": 3}, "layer"),
        ({"conv": "GATv3Conv"}, "GATv2Conv"),
    ],
)
def test_mistakes_are_named(settings, message):
    with pytest.raises(ValidationError, match=message):
        EncoderConfig(**settings)


def test_heads_do_not_matter_where_nothing_attends():
    assert EncoderConfig(kind="gnn", conv="SAGEConv", hidden=10).hidden == 10


def test_standard_deviations_must_fit():
    with pytest.raises(ValidationError, match=r"initial_std=0\.001 must be above 0\.001"):
        ModelConfig(initial_std=0.001)
