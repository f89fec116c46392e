"""The tree of a proof: what stands below what, and what is still to prove."""

from edgewise.systems.reasoning.render import tree

QUERY = ["in(rwanda,africa)"]


def test_a_rule_puts_its_atoms_below_the_first_and_the_rest_waits():
    goals = [
        QUERY,
        ["near(rwanda,X)", "in(X,africa)"],
        ["in(burundi,africa)"],
        ["near(burundi,X)", "in(X,africa)"],
    ]
    rows, waiting = tree(goals)
    assert [row.parent for row in rows] == [0, 0, 0, 2, 2]
    assert [row.level for row in rows] == [0, 1, 1, 2, 2]
    assert [row.step for row in rows] == [0, 1, 1, 3, 3]
    assert waiting == [[0], [1, 2], [2], [3, 4]]


def test_the_end_of_a_proof_is_no_row():
    rows, waiting = tree([QUERY, ["True"], ["True"]])
    assert len(rows) == 1
    assert waiting == [[0], [0], [0]]
