"""Instances of files: what is read, what is refused, and the verb that solves them."""

import contextlib
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import edgewise as ew
from edgewise.cli.main import main
from edgewise.problems.files import read_links, read_plane, read_shop
from edgewise.problems.given import read_instance

TSP = """NAME : square
TYPE : TSP
DIMENSION : 4
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
3 10 10
2 0 10
4 10 0
EOF
"""
VRP = """NAME : small
DIMENSION : 3
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 10
NODE_COORD_SECTION
1 5 5
2 0 5
3 5 0
DEMAND_SECTION
1 6
2 0
3 7
DEPOT_SECTION
2
-1
EOF
"""
SHOP = "# two jobs\n2 2\n0 3 1 2\n1 4 0 1\n"
GRAPH = "c a path\np edge 3 3\ne 1 2\ne 2 3\ne 3 2\n"


def write(folder, name, text):
    file = folder / name
    file.write_text(text)
    return file


def test_coordinates_are_read_in_the_order_of_nodes(tmp_path):
    plane = read_plane(write(tmp_path, "square.tsp", TSP))
    assert plane.places == ((0, 0), (0, 10), (10, 10), (10, 0))
    env, state, unit = read_instance("tsp", write(tmp_path, "square.tsp", TSP))
    assert unit == 10.0
    assert torch.equal(state["place"][0] * unit, torch.tensor(plane.places))
    root, length = env.worlds_in(state), 0.0
    for city in range(4):
        root = env.simulate(root.set("action", torch.tensor([city])))
        length -= float(root["reward"])
    assert length * unit == pytest.approx(40.0)


def test_the_depot_comes_first(tmp_path):
    plane = read_plane(write(tmp_path, "small.vrp", VRP))
    assert plane.places == ((0, 5), (5, 5), (5, 0))
    assert plane.demands == (0, 6, 7)
    env, state, unit = read_instance("cvrp", write(tmp_path, "small.vrp", VRP))
    assert state["demand"][0].tolist() == pytest.approx([0, 0.6, 0.7])
    root = env.simulate(env.worlds_in(state).set("action", torch.tensor([1])))
    assert root["action_mask"][0].tolist() == [True, False, False]
    assert -float(root["reward"]) * unit == pytest.approx(5.0)


def test_a_shop_is_scheduled_as_it_is_written(tmp_path):
    file = write(tmp_path, "shop.txt", SHOP)
    shop = read_shop(file)
    assert (shop.machines, shop.durations) == (((0, 1), (1, 0)), ((3, 2), (4, 1)))
    env, state, _ = read_instance("job_shop", file)
    root = env.simulate(env.worlds_in(state).set("action", torch.tensor([0])))
    root = env.simulate(root.set("action", torch.tensor([1])))
    for _ in range(2):
        root = env.simulate(env.rand_action(root))
    assert float(root["metrics", "makespan"]) == 6.0


@pytest.mark.parametrize("problem", ["vertex_cover", "independent_set", "max_cut", "coloring"])
def test_a_graph_has_its_edges(problem, tmp_path):
    file = write(tmp_path, "path.col", GRAPH)
    assert read_links(file).edges == ((0, 1), (1, 2))
    env, state, _ = read_instance(problem, file)
    assert state["adjacent"][0].int().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert env.worlds_in(state)["graph", "edge_mask"].sum() == 4


@pytest.mark.parametrize(
    "read, text, message",
    [
        (read_plane, TSP.replace("EUC_2D", "GEO"), "line 4: EDGE_WEIGHT_TYPE is GEO"),
        (read_plane, TSP.replace("DIMENSION : 4", "DIMENSION : 5"), "has 4 nodes, expected 5"),
        (read_plane, TSP.replace("3 10 10", "2 10 10"), "line 8: node 2 occurs twice"),
        (read_plane, TSP.replace("3 10 10", "3 x 10"), "line 7: got 'x', expected a number"),
        (read_plane, TSP.replace("3 10 10", "3 nan 10"), "line 7: got 'nan'"),
        (read_plane, TSP.replace("DIMENSION : 4", "DIMENSION : " + "9" * 5000), "line 3"),
        (read_plane, TSP.replace("DIMENSION : 4\n", ""), "no DIMENSION"),
        (read_plane, VRP.replace("3 7", "3 70"), "exceeds the capacity"),
        (read_plane, VRP.replace("\n2\n-1", "\n2\n3\n-1"), "2 depots"),
        (read_plane, VRP.replace("2 0\n3 7", "2 1\n3 7"), "the depot must have none"),
        (read_shop, "", "it is empty"),
        (read_shop, "2 2\n0 1 1 1\n", "1 jobs, expected 2"),
        (read_shop, "1 2\n0 1 0 1\n", "line 2: a job must visit every machine once"),
        (read_shop, "1 2\n0 1 1\n", "line 2: got 3 numbers, expected 4"),
        (read_shop, "1 1\n0 -1\n", "durations must not be negative"),
        (read_links, "e 1 2\n", "line 1"),
        (read_links, "p edge 2 1\ne 1 3\n", "line 2: got 3 as node"),
        (read_links, "p edge 2 1\ne 1 1\n", "joined with itself"),
        (read_links, "c nothing\n", "no line `p edge N M`"),
    ],
)
def test_faults_name_file_and_line(read, text, message, tmp_path):
    with pytest.raises(ew.DataError, match=message) as caught:
        read(write(tmp_path, "file.txt", text))
    assert "file.txt" in str(caught.value)


def test_a_file_of_another_problem_is_refused(tmp_path):
    with pytest.raises(ew.DataError, match="instance of cvrp and not of tsp"):
        read_instance("tsp", write(tmp_path, "small.vrp", VRP))
    with pytest.raises(ew.DataError, match="cvrptw reads no files"):
        read_instance("cvrptw", write(tmp_path, "small.vrp", VRP))


NAMES = ["DIMENSION", ":", "NODE_COORD_SECTION", "DEMAND_SECTION", "p", "e", "edge", "#", "EOF"]
WORDS = st.sampled_from([*NAMES, "1", "2", "-1", "1e999", "--5", "x"])


@given(st.lists(st.lists(WORDS, max_size=5), max_size=12))
def test_any_text_is_data_or_an_error_in_words(tmp_path_factory, rows):
    file = write(tmp_path_factory.getbasetemp(), "any.txt", "\n".join(" ".join(row) for row in rows))
    for read in (read_plane, read_shop, read_links):
        with contextlib.suppress(ew.DataError):
            read(file)


def test_the_verb_solves_files(tmp_path, capsys):
    small = {"total_frames": 200, "num_envs": 10, "evaluation.episodes": 2, "num_cities": 5}
    run = ew.train("tsp20-pomo", folder=tmp_path / "run", progress=False, **small)
    file = write(tmp_path, "square.tsp", TSP)
    words = ["problems", "solve", str(run.path), str(file), "--decode", "multistart", "--rules", "--json"]
    assert main(words) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["two_opt"] == pytest.approx(40.0)
    assert found["policy"] >= 40.0 - 1e-4
    assert main(["problems", "solve", str(run.path), str(tmp_path / "absent.tsp")]) == 2
    assert "absent.tsp" in capsys.readouterr().err
