"""Random inputs of every kind: each is accepted or refused in words, and none gives a traceback."""

import hashlib
import json
import random
import shutil
import signal
import traceback
from pathlib import Path

import torch
import yaml
from tests.attack import grammar
from tests.attack.flags import flag_sets
from tests.attack.samples import EVALUATION, GRAPHS, PLUGIN, REPLAY, TRIPLES
from tests.systems.multihop.networks.written import write_instance

from edgewise import plugins
from edgewise.config.errors import EdgewiseError
from edgewise.evaluation.replays import files as replay_files
from edgewise.evaluation.result import Evaluation
from edgewise.experiments.load import load_config
from edgewise.graphs.datasets import read_graphs
from edgewise.graphs.graph_store import dump_graph_set
from edgewise.runs.checkpoint import store
from edgewise.studies.folder import first_difference, open_study
from edgewise.studies.proposals import best_trial, importances
from edgewise.studies.space import Range, describe
from edgewise.studies.trials import Trials
from edgewise.systems.hex.onnx_player import read_description
from edgewise.systems.multihop.networks.generate import barabasi_network
from edgewise.systems.multihop.networks.instance import read_instance
from edgewise.systems.reasoning.embeddings.config import EmbeddingConfig
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.embeddings.store import load_kge, save_kge
from edgewise.systems.reasoning.knowledge.dataset import load_dataset
from edgewise.terminal.sweep import combinations, given_settings
from edgewise.training import fitting

SECONDS = 60
RECIPES = ("graphwalk-ppo", "hex-selfplay", "marine-quick", "swarm-mappo", "queueing-line3-ppo")
WORDS = """NaN Infinity -Infinity 1e999 -1 0 1.5 1e-320 null true ~ ] } : , " ' [] {} [1,2] *a none auto é 💥
2026-11-16 0x1f 1_000 ../../etc/passwd /dev/zero ~root %s%n ${HOME} <script> !!python/object:os.system"""
SPACES = ("", " ", "\\", "\t", "\n", "\r", "\0", "\ufeff", "\u2028", '{"a": 1}', "&a [*a]")
LONG = ("7" * 5000, "[" * 2000, "{" * 300, "a" * 10_000, "-" * 50)
TOKENS = (*WORDS.split(), *SPACES, *LONG)


def mutated(text, dice):
    """Return text with a few random edits."""
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.randrange(len(text) + 1)
        size = dice.choice((0, 1, 1, 3, 20))
        match dice.randrange(5):
            case 0:
                text = text[:at] + dice.choice(TOKENS) + text[at + size :]
            case 1:
                text = text[:at] + text[at + size :]
            case 2:
                text = text[:at] + text[at : at + size] * 2 + text[at + size :]
            case 3:
                text = (
                    text[:at]
                    + chr(dice.choice((0, 9, 34, 44, 45, 48, 57, 91, 93, 123, 125, 0x85, 0x2028)))
                    + text[at + 1 :]
                )
            case _:
                text = text[:at] if dice.random() < 0.2 else text[:at] + text[at:].replace("0", "-0.5", 1)
    return text


def replaced(value, dice):
    """Return nested values with one of them replaced by something else."""
    odd = (
        None,
        True,
        -1,
        0,
        1.5,
        10**30,
        float("nan"),
        float("inf"),
        "",
        "x",
        [],
        {},
        [[]],
        {"a": {}},
        "7" * 5000,
    )
    if isinstance(value, dict) and value and dice.random() < 0.9:
        name = dice.choice(sorted(value))
        if dice.random() < 0.1:
            return {**{key: each for key, each in value.items() if key != name}, "unheard": 1}
        return {**value, name: replaced(value[name], dice)}
    if isinstance(value, list | tuple) and value and dice.random() < 0.8:
        at = dice.randrange(len(value))
        return [*value[:at], replaced(value[at], dice), *value[at + 1 :]]
    return dice.choice(odd)


def config_file(place, dice):
    """A YAML or JSON file that changes a recipe."""
    plain = {"recipe": (name := dice.choice(RECIPES)), **load_config(name).to_plain()}
    for _ in range(dice.choice((0, 1, 2))):
        plain = replaced(plain, dice)
    is_json = dice.random() < 0.5
    text = json.dumps(plain, indent=1) if is_json else yaml.safe_dump(plain, allow_unicode=True)
    file = place / ("mine.json" if is_json else "mine.yaml")
    file.write_bytes((mutated(text, dice) if dice.random() < 0.7 else text).encode(errors="replace"))
    load_config(file)


def flags(place, dice):
    """Flags on the command line."""
    name = dice.choice(RECIPES)
    known = [
        "seed",
        "device",
        "threads",
        "num-envs",
        "total-frames",
        "env.size",
        "hidden",
        "learning-rate",
        "episodes",
        "curriculum",
        "schedules",
        "settings",
        "env.num-nodes",
        "model.encoder.kind",
        "recipe",
        "a.b.c",
        "",
    ]
    chosen = [
        (
            f"--{mutated(word, dice) if dice.random() < 0.3 else word}",
            dice.choice((*TOKENS, mutated("[3, 7]", dice), None)),
        )
        for word in dice.sample(known, dice.randint(1, 3))
    ]
    load_config(name, flags=chosen)


def sweep(place, dice):
    """Settings of an evaluation."""
    env = load_config("graphwalk-ppo").env
    word = dice.choice(["num_nodes", "env.num_nodes", "max_steps", "", "x"])
    combinations(
        env, given_settings([f"{word}={mutated('4,8', dice)}"], [("--num-nodes", mutated("[4,8],9", dice))])
    )


def graphs(place, dice):
    """A graph in one of the formats."""
    name = dice.choice(sorted(GRAPHS))
    file = place / name
    content = mutated(GRAPHS[name], dice).encode(errors="replace")
    file.write_bytes(content if dice.random() < 0.9 else bytes(dice.randrange(256) for _ in range(40)))
    read_graphs(str(file))


def graph_set(place, dice):
    """A file of graphs that were given in Python."""
    source = place / "two.csv"
    source.write_text(GRAPHS["graph.csv"])
    content = bytearray(dump_graph_set(read_graphs(str(source))))
    for _ in range(dice.randint(1, 3)):
        content[dice.randrange(len(content))] = dice.randrange(256)
    file = place / "graphs.safetensors"
    file.write_bytes(bytes(content[: dice.randrange(len(content))] if dice.random() < 0.2 else content))
    read_graphs(str(file))


def dataset(place, dice):
    """The folder of a knowledge graph."""
    for name, text in TRIPLES.items():
        (place / name).write_text(text)
    victim = dice.choice(sorted(TRIPLES))
    (place / victim).write_bytes(mutated(TRIPLES[victim], dice).encode(errors="replace"))
    load_dataset(place)


def network(place, dice):
    """A network of queues."""
    file = place / "network.json"
    file.unlink(missing_ok=True)
    write_instance(barabasi_network(5, seed=dice.randrange(5)), file)
    text = file.read_text()
    text = json.dumps(replaced(json.loads(text), dice)) if dice.random() < 0.5 else mutated(text, dice)
    file.write_bytes(text.encode(errors="replace"))
    read_instance(file)


def checkpoint(place, dice):
    """A checkpoint by somebody who knows the format: its hashes are right."""
    shutil.rmtree(place / "checkpoints", ignore_errors=True)
    state = {
        "algorithm": {"weight": torch.ones(2, 3), "moments": {0: torch.zeros(2)}},
        "trainer": {"identity": {"model_revision": 1}, "frames": 3, "values": (1, float("inf"))},
    }
    path = store.save(place / "checkpoints", state, step=3)
    for name in dice.sample(["state.json", "manifest.json"], dice.randint(1, 2)):
        text = (path / name).read_text()
        text = json.dumps(replaced(json.loads(text), dice)) if dice.random() < 0.6 else mutated(text, dice)
        (path / name).write_bytes(text.encode(errors="replace"))
    _seal(path)
    loaded = store.load(path, parts=dice.choice((None, ("trainer",), ("algorithm", "trainer"))))
    fitting.check_revision(path, loaded.get("trainer", {}))


def _seal(path: Path) -> None:
    """Make the manifest agree with the files, and seal it."""
    raw = (path / "state.json").read_bytes()
    try:
        manifest = json.loads((path / "manifest.json").read_text())
        manifest["files"]["state.json"] = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
        (path / "manifest.json").write_text(json.dumps(manifest))
    except (ValueError, TypeError, KeyError):
        pass
    seal = hashlib.sha256((path / "manifest.json").read_bytes()).hexdigest()
    (path / "manifest.sha256").write_text(f"{seal}\n")


def result_file(place, dice):
    """A saved evaluation or a replay."""
    content, read = dice.choice(((EVALUATION, Evaluation.load), (REPLAY, replay_files.load)))
    text = json.dumps(replaced(content, dice)) if dice.random() < 0.6 else mutated(json.dumps(content), dice)
    file = place / "result.json"
    file.write_bytes(text.encode(errors="replace"))
    found = read(file)
    if isinstance(found, Evaluation):
        found.summary()


def embeddings(place, dice):
    """Embeddings of a knowledge graph by somebody who knows the format: the hash is right."""
    for name, text in TRIPLES.items():
        (place / name).write_text(text)
    vocabulary = load_dataset(place).vocabulary
    counts = {"num_entities": vocabulary.num_entities, "num_predicates": vocabulary.num_predicates}
    save_kge(place, KnowledgeEmbedding(EmbeddingConfig(dim=4), **counts), vocabulary=vocabulary)
    file = place / "manifest.json"
    text = file.read_text()
    if dice.random() < 0.7:
        text = json.dumps(replaced(json.loads(text), dice))
    file.write_bytes((text if dice.random() < 0.5 else mutated(text, dice)).encode(errors="replace"))
    load_kge(place, vocabulary=vocabulary)


def described_network(place, dice):
    """The description of a network that plays Hex."""
    plain = {"planes": ["mine", "theirs"], "size": 5, "border": 1, "view": "mover", "rotate": False}
    text = json.dumps(replaced(plain, dice)) if dice.random() < 0.6 else mutated(json.dumps(plain), dice)
    (place / "network.json").write_bytes(text.encode(errors="replace"))
    read_description(place / "network.json")


def study(place, dice):
    """The plan and the trials of a sweep."""
    shutil.rmtree(place / "study", ignore_errors=True)
    space = {"algorithm.learning_rate": Range("log", 1e-6, 1.0), "seed": Range("int", 0, 9)}
    plan = {"kind": "sweep", "space": describe(space)}

    def differs(other):
        return first_difference(plan, {name: other.get(name) for name in plan})

    def opened():
        return open_study(place / "study", plan, name="x", differs=differs)

    trials = Trials(opened(), space)
    for number in range(5):
        trials.add({"algorithm.learning_rate": 0.1 / (number + 1), "seed": number})
        trials.end(number, "complete", value=float(number), frames=8)
    for name in dice.sample(["study.json", "trials.json"], dice.randint(1, 2)):
        file = place / "study" / name
        text = file.read_text()
        text = json.dumps(replaced(json.loads(text), dice)) if dice.random() < 0.6 else mutated(text, dice)
        file.write_bytes(text.encode(errors="replace"))
    found = Trials(opened(), space).all
    best_trial(found, maximise=True)
    importances(space, found, maximise=True)


def plugin(place, dice):
    """A Python file of the user's."""
    file = place / f"lamp{dice.randrange(10**9)}.py"
    file.write_bytes(mutated(PLUGIN, dice).encode(errors="replace"))
    try:
        plugins.use_plugin(str(file))
    finally:
        file.unlink()


KINDS = {
    config_file: 1800,
    flags: 1300,
    sweep: 200,
    graphs: 600,
    graph_set: 150,
    dataset: 300,
    network: 400,
    checkpoint: 400,
    result_file: 400,
    embeddings: 200,
    described_network: 200,
    study: 200,
    plugin: 200,
    **grammar.KINDS,
    flag_sets: 2000,
}
"""Kinds of inputs, and how many of each are tried."""


def fuzz(place: Path, *, share: float = 1.0, seed: int = 0, say=print):
    """Try inputs of every kind; return counts of accepted, refused and crashed by kind, and the crashes."""
    table, bad = {}, []
    for kind, count in KINDS.items():
        counts = {"accepted": 0, "refused": 0, "TRACEBACK": 0}
        for number in range(max(1, int(count * share))):
            case = f"{kind.__name__}-{seed}-{number}"
            verdict, text = attempt(kind, place, case)
            counts[verdict] += 1
            if verdict == "TRACEBACK":
                bad.append(case)
                say(f"TRACEBACK: {case}: {text}")
        table[kind.__name__] = counts
        say(f"{kind.__name__}: {sum(counts.values())} inputs")
    return table, bad


def attempt(kind, place: Path, case: str):
    """Try one input; the same `case` gives the same input."""
    folder = place / kind.__name__
    folder.mkdir(parents=True, exist_ok=True)
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    try:
        kind(folder, random.Random(case))
    except EdgewiseError as error:
        return ("refused", str(error)) if str(error).strip() else ("TRACEBACK", "an error without words")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return "TRACEBACK", "".join(traceback.format_exception(error)[-4:])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return "accepted", ""


def _too_long(*_):
    raise TimeoutError(f"longer than {SECONDS} s")
