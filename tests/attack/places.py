"""Links, pipes, devices and folders in place of files that edgewise reads, and forged configs of runs."""

import json
import os
import shutil
import socket
from pathlib import Path

from tests.attack.inputs import attempt
from tests.attack.samples import EVALUATION, GRAPHS, REPLAY, TRIPLES

from edgewise.evaluation.replays import files as replay_files
from edgewise.evaluation.result import Evaluation
from edgewise.experiments.evaluate import load_trained
from edgewise.experiments.load import load_config
from edgewise.graphs.datasets import read_graphs
from edgewise.problems.files import read_links, read_plane, read_shop
from edgewise.runs.zoo import run_path
from edgewise.systems.hex.onnx_player import read_description
from edgewise.systems.multihop.networks.instance import read_instance
from edgewise.systems.reasoning.embeddings.store import read_manifest
from edgewise.systems.reasoning.knowledge.files import read_triples
from edgewise.systems.reasoning.knowledge.rule_files import read_rules
from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

SECRET = "1 2\n2 3\n"
READERS = {
    "graph.csv": lambda path: read_graphs(str(path)),
    "graph.json": lambda path: read_graphs(str(path)),
    "graph.graphml": lambda path: read_graphs(str(path)),
    "graphs.safetensors": lambda path: read_graphs(str(path)),
    "folder/graph.edgelist": lambda path: read_graphs(str(path.parent)),
    "config.yaml": load_config,
    "mine.json": load_config,
    "train.txt": read_triples,
    "rules.txt": lambda path: read_rules(path, Vocabulary.of(["a"], ["b"])),
    "network.json": read_instance,
    "instance.tsp": read_plane,
    "instance.jsp": read_shop,
    "instance.col": read_links,
    "description.json": read_description,
    "manifest.json": lambda path: read_manifest(path.parent),
    "evaluation.json": Evaluation.load,
    "replay.json": replay_files.load,
}


def pipe(path, outside):
    os.mkfifo(path)


def device(path, outside):
    path.symlink_to("/dev/zero")


def endless(path, outside):
    path.symlink_to("/dev/random")


def folder(path, outside):
    path.mkdir()


def loop(path, outside):
    path.symlink_to(path)


def dangling(path, outside):
    path.symlink_to(outside / "nothing")


def listening(path, outside):
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(path.parent)  # addresses of sockets are short
        made.bind(path.name)


def huge(path, outside):
    with path.open("wb") as file:
        file.truncate(1 << 40)


PLACES = (pipe, device, endless, folder, loop, dangling, listening, huge)
"""Ways in which a file is none, or none that anybody should read."""


def refused(place, make, name):
    """Put something in place of a file, and read it; anything but a refusal is an error."""
    case = place / f"{make.__name__}-{name.replace('/', '-')}"
    path = case / name
    path.parent.mkdir(parents=True)
    here = os.getcwd()
    try:
        make(path, case)
    finally:
        os.chdir(here)
    READERS[name](path)
    raise RuntimeError(f"{name} as {make.__name__} was read")


def link_from_a_run(place, name):
    """A link in a run folder to a right file outside it."""
    content = {
        **GRAPHS,
        **TRIPLES,
        "evaluation.json": json.dumps(EVALUATION),
        "replay.json": json.dumps(REPLAY),
    }
    run, outside = (
        place / f"link-{name.replace('/', '-')}" / "run",
        place / f"outside-{name.replace('/', '-')}",
    )
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.json").write_text("{}")
    (run / "versions.json").write_text("{}")
    outside.write_text(content.get(Path(name).name, SECRET))
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).symlink_to(outside)
    READERS[name](run / name)
    raise RuntimeError(f"{name} was read through a link that leads out of its run folder")


def graphs_of_a_run(place, _):
    """`env.graphs` of a run's config that leads through a link to a folder outside."""
    run, outside = place / "graphs" / "run", place / "graphs" / "mine"
    for each in (run / "checkpoints", outside):
        each.mkdir(parents=True)
    (run / "versions.json").write_text("{}")
    (outside / "secret.csv").write_text("1,2\n")
    (run / "data").symlink_to(outside)
    read_graphs(str(run / "data"))
    raise RuntimeError("a link to a folder was followed")


def every_place():
    """Return name and call of every case."""
    cases = [
        (f"{make.__name__}: {name}", lambda place, dice, make=make, name=name: refused(place, make, name))
        for make in PLACES
        for name in READERS
    ]
    cases += [
        (f"link: {name}", lambda place, dice, name=name: link_from_a_run(place, name)) for name in READERS
    ]
    return [*cases, ("link: folder", graphs_of_a_run)]


def try_places(place):
    """Try every case; return how many there were, and what went wrong."""
    cases, bad = every_place(), []
    for name, call in cases:
        verdict, text = attempt(call, place, name)
        if verdict != "refused":
            bad.append(f"{name}: {verdict}: {text[-600:]}")
    return len(cases), bad


FORGED = {
    "model.encoder.hidden": (8000, 60_000, 10**6, 10**9, 0, -4, 7, "64", None, [64]),
    "model.encoder.layers": (200, 10**6, 0),
    "model.encoder.heads": (3, 64, 10**6),
    "model.head_hidden": ([8000, 8000], [10**6], [], [0], "x"),
    "env.num_nodes": (10**6, 10**9, [5, 2], 0, -1, "4", [4, 10**30]),
    "env.max_nodes": (10**6, 10**12, 1),
    "env.max_steps": (10**15, 0, 1e308),
    "training.num_envs": (10**9, 10**18, 0),
    "training.rollout_length": (10**9, 2**63),
    "evaluation.episodes": (10**9, 0, 2**64),
    "algorithm.learning_rate": (1e300, -1, "nan"),
    "algorithm.gamma": (2, float("nan"), None),
    "threads": (10**6, 0, -1),
    "processes": (4096, 0),
    "device": ("cuda:99", "cpu:7", "meta", "/dev/zero", ""),
    "seed": (2**63, -1, 1.5),
    "env_name": ("hex", "os", "file.py:Env", "../x", ""),
    "algorithm_name": ("dqn", "os:system", "x.py:Y", ""),
    "model.encoder.kind": ("gcn", "os:system", "evil.py:Evil", ""),
    "name": ("../../x", "/etc/passwd", "\0", "x" * 5000),
    "training.curriculum": ([{"name": "a", "env": {"num_nodes": 10**9}}], "x", [None]),
    "ray": ({"address": "1.2.3.4:99"}, "auto"),
    "intervention": (1,),
    "plugins": (["evil.py"], "evil.py"),
}
"""What somebody writes into the config of a run folder that others will evaluate."""


def forged_configs():
    """Return every single forgery as a name and a value."""
    return [(name, value) for name, values in FORGED.items() for value in values]


def forged(place, name, value):
    """Evaluate a run of somebody else whose config asks for something else than was trained."""
    run = place / "forged"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(run_path("zoo:graphwalk-ppo"), run)
    (run / "evil.py").write_text("raise SystemExit('imported')")
    config = json.loads((run / "config.json").read_text())
    *parents, last = name.split(".")
    inner = config
    for parent in parents:
        inner = inner.setdefault(parent, {})
    inner[last] = value
    (run / "config.json").write_text(json.dumps(config))
    load_trained(run)


def try_forged(place):
    """Try every forgery; return how many were accepted and refused, and what went wrong."""
    counts, bad = {"accepted": 0, "refused": 0}, []
    for name, value in forged_configs():
        verdict, text = attempt(
            lambda place, dice, n=name, v=value: forged(place, n, v), place, f"{name}={value}"
        )
        if verdict in counts:
            counts[verdict] += 1
        else:
            bad.append(f"{name}={str(value)[:40]}: {text[-600:]}")
    return counts, bad
