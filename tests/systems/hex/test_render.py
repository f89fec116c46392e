"""Pictures of a Hex board: who connects which sides, and the last stone."""

from edgewise.systems.hex.render import sides


def test_the_first_player_has_top_and_bottom():
    top, right, bottom, left = sides(3)
    heights = [sum(y for _, y in band) for band in (top, right, bottom, left)]
    assert heights[0] == max(heights)
    assert heights[2] == min(heights)
    assert sum(x for x, _ in right) > sum(x for x, _ in left)
