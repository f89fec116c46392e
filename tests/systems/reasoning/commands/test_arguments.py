"""What the verbs of reasoning cannot take is refused by its name."""

import pytest


@pytest.mark.parametrize("verb", ["kge", "prove"])
def test_a_path_that_the_system_refuses_is_named(edgewise, verb):
    outcome = edgewise("reasoning", verb, "x" * 300)
    assert outcome.code == 2
    assert "xxx" in outcome.err
    assert "File name too long" in outcome.err


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (f"prove countries_s3 --seed {2**63}", f"from 0 to {2**63 - 1}"),
        (f"kge countries_s3 --seed {2**63}", "--seed"),
        ("rank run --negatives 0", "--negatives: got 0, expected a whole number from 1, or all"),
        ("explain run a(b,c) --beam 0", "--beam: got 0"),
    ],
)
def test_what_an_option_cannot_hold_is_refused_by_its_name(edgewise, command, complaint):
    outcome = edgewise("reasoning", *command.split())
    assert outcome.code == 2
    assert complaint in outcome.err
