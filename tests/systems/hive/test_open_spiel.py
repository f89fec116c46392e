"""Random games in OpenSpiel have the same moves, apart from moves of pinned tiles that it allows."""

import pytest
from tests.systems.hive.compare import VARIANTS, OpenSpiel, compare_open_spiel, read_place, read_tile
from tests.systems.hive.reference import Game

pytest.importorskip("pyspiel", reason="open_spiel is not installed")


@pytest.mark.parametrize("seed", range(8))
def test_moves_and_ends_are_the_same(seed):
    _, _, other = compare_open_spiel(VARIANTS[seed], plies=40, seed=seed)
    assert other == 0


def test_its_defect_is_told_apart():
    """OpenSpiel 2.0.2 lets bA2 move here, although bQ is then cut off; we do not."""
    game, other = Game("QSSBBGGGAAA"), OpenSpiel("")
    for text in ("wA1", "bA2 \\wA1", "wS1 wA1\\", "bQ bA2/", "wB1 wS1/"):
        name, *rest = text.split()
        where = {tile: place for place, stack in game.stacks.items() for tile in stack}
        move = (read_tile(name), read_place(rest[0] if rest else None, where))
        action = next(
            each
            for each in other.state.legal_actions()
            if other.state.action_to_string(each).split()[0] == name
            and _place(other.state.action_to_string(each), where) == move[1]
        )
        other.state.apply_action(action)
        game.play(move)
    other.compare(game, game.moves())
    assert (other.equal, other.pinned, other.other) == (0, 1, 0)


def _place(text, where):
    _, *rest = text.split()
    return read_place(rest[0] if rest else None, where)
