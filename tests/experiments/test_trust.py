"""Neither a run folder nor a config file imports code: every field, every verb, every way to name code."""

import json
import shutil
import sys
from copy import deepcopy
from itertools import product

import pytest
import yaml
from tests.isolation import isolated

from edgewise.cli.main import main
from edgewise.cli.verbs import GENERIC
from edgewise.plugins.kinds import KINDS

EVIL = "open({mark!r}, 'w').close()\n"

REFERENCES = {
    "file": "evil_code.py",
    "name in a file": "evil_code.py:Thing",
    "name in a module": "evil_code:Thing",
    "module below a folder": "evil_pack.evil_code:Thing",
    "absolute path": "{folder}/evil_code.py:Thing",
    "file in the run folder": "{run}/evil_code.py:Thing",
    "upwards": "../{name}/evil_code.py:Thing",
    "plain name": "evil",
}
"""Ways to name the planted code; `plain name` is what the planted project files and packages declare."""

NAMES = {
    "env_name": ("env_name",),
    "algorithm_name": ("algorithm_name",),
    "recipe": ("recipe",),
    "encoder": ("model", "encoder", "kind"),
    "head": ("model", "head"),
    "convolution": ("model", "encoder", "conv"),
}
"""Fields that name code."""

OTHERS = {
    "model.builder": ("model", "builder"),
    "baselines": ("evaluation", "baselines"),
    "metric": ("evaluation", "metric"),
    "loggers": ("logging", "loggers"),
    "callbacks": ("callbacks",),
    "plugins": ("plugins",),
    "format": ("format",),
    "device": ("device",),
    "name": ("name",),
}
"""Fields that name no code, and fields that do not exist."""

RUN_VERBS = {
    "resume": ["resume", "{run}"],
    "resume accepting": ["resume", "{run}", "--total-frames", "96", "--accept-changed-code"],
    "eval": ["eval", "{run}", "--episodes", "2"],
    "eval changed": ["eval", "{run}", "--set", "num_nodes=5", "--baselines", "all", "--episodes", "2"],
    "arena": ["arena", "{run}", "--games", "2"],
    "export": ["export", "{run}", "--to", "pt2", "--out", "{folder}/exported"],
    "render": ["render", "{run}", "--to", "{folder}/episode.svg"],
    "render played": ["render", "{run}", "--play", "--to", "{folder}/played.svg"],
    "report": ["report", "{run}"],
    "verify": ["verify", "{run}"],
    "pack": ["pack", "{run}", "--out", "{folder}/packed", "--episodes", "2"],
    "play": ["play", "{run}", "--port", "0"],
    "train": ["train", "{run}/config.json", "--dry-run"],
    "hub": ["hub", "push", "{run}", "somebody/walker"],
}
"""Verbs that take a run folder or a file of it."""

WITHOUT_CODE = ("render", "report", "verify")
"""Verbs that need no code of a run."""

REFUSED_ANYWAY = ("play", "hub")
"""Verbs that refuse the run of these tests for another reason, before they need its code."""

FILE_VERBS = {
    "train": ["train", "{file}", "--dry-run"],
    "train with a file": ["train", "graphwalk", "--config", "{file}", "--dry-run"],
    "train a recipe with a file": ["train", "graphwalk-ppo", "--config", "{file}", "--dry-run"],
}

SWEPT = ("--set", "learning_rate=log:1e-4,1e-2", "--trials", "1", "--out", "{folder}/sweep")

BENCHMARK = ["benchmark", "{file}", "--out", "{folder}/study"]
"""A benchmark file names environments, algorithms and settings of its own."""

NAME_VERBS = {
    "train": ["train", "evil", "--dry-run"],
    "train algorithm": ["train", "graphwalk", "--algorithm", "evil", "--dry-run"],
    "baseline": ["baseline", "evil"],
    "envs": ["envs", "show", "evil"],
    "envs check": ["envs", "check", "evil"],
    "recipes": ["recipes", "show", "evil"],
    "recipes check": ["recipes", "check", "evil"],
    "oracle": ["oracle", "evil", "--graph", "line3", "--rate", "0.4"],
    "sweep": ["sweep", "evil", *SWEPT],
    "sweep algorithm": ["sweep", "graphwalk", "--algorithm", "evil", *SWEPT],
    "the verb itself": ["evil"],
}
"""Verbs that take a plain name, in a working directory that tries to give it a meaning."""

HARMLESS = {
    "help": ["--help"],
    "version": ["--version"],
    "list environments": ["envs", "list"],
    "list recipes": ["recipes", "list"],
    "help of train": ["train", "--help"],
    "help of eval": ["eval", "--help"],
    "completion": ["completion", "bash"],
    "doctor": ["doctor"],
    "zoo": ["zoo"],
}
"""Command lines that work whatever lies around."""


@pytest.fixture(scope="module")
def trained_walk(tmp_path_factory):
    """The folder of a small run of the defaults, without a recipe."""
    folder = tmp_path_factory.mktemp("runs") / "walk"
    flags = ["--total-frames=64", "--num-envs=4", "--rollout-length=8", "--epochs=1", "--minibatch-size=16"]
    flags += [
        "--hidden=8",
        "--model.encoder.heads=2",
        "--layers=1",
        "--evaluation.every=none",
        "--tensorboard=false",
    ]
    flags += ["--evaluation.episodes=2", "--evaluation.baselines=[]", "--out", str(folder)]
    assert main(["train", "graphwalk", *flags]) == 0
    return folder


class Planted:
    """A working directory full of traps, and a run folder among them."""

    def __init__(self, folder, trained):
        self.folder, self.run, self.mark = folder, folder / "run", folder / "imported"
        shutil.copytree(trained, self.run)
        self.file = folder / "given.yaml"
        self.config = json.loads((self.run / "config.json").read_text())
        for place in (folder, self.run, folder / "evil_pack", self.run / "evil_pack"):
            place.mkdir(exist_ok=True)
            (place / "evil_code.py").write_text(EVIL.format(mark=str(self.mark)))
            (place / "__init__.py").write_text("") if place.name == "evil_pack" else None
        listed = '["evil_code.py", "evil_code", "evil_pack.evil_code"]'
        (self.run / "pyproject.toml").write_text(f"[tool.edgewise]\nplugins = {listed}\n")
        (self.run / "edgewise.toml").write_text(f"plugins = {listed}\n")
        groups = [kind.group for kind in KINDS.values()]
        points = "".join(f"[{group}]\nevil = evil_code:Thing\n" for group in groups)
        (self.run / "evil-1.0.dist-info").mkdir()
        (self.run / "evil-1.0.dist-info" / "entry_points.txt").write_text(points)

    def values(self, path, reference):
        """The run's config with one field replaced."""
        values = section = deepcopy(self.config)
        if path[-1] == "conv":
            values["model"]["encoder"]["kind"] = "gnn"
        for name in path[:-1]:
            section = section.setdefault(name, {})
        old = section.get(path[-1])
        section[path[-1]] = (
            [reference] if isinstance(old, list) or path[-1] in ("plugins", "loggers") else reference
        )
        return values

    def spell(self, text):
        return text.format(folder=self.folder, run=self.run, name=self.folder.name, file=self.file)


@pytest.fixture(scope="module")
def traps(tmp_path_factory, trained_walk):
    return Planted(tmp_path_factory.mktemp("traps"), trained_walk)


@pytest.fixture
def planted(traps, monkeypatch):
    """The traps, for a command line that is run in their folder as by `python -m edgewise.cli`."""
    monkeypatch.chdir(traps.folder)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    with isolated():
        yield traps
    traps.mark.unlink(missing_ok=True)


def check(planted, words, capsys, *, must_name_flag):
    """Nothing is imported, and the command line works or says what would do."""
    capsys.readouterr()
    code = main([planted.spell(word) for word in words])
    said = capsys.readouterr().err
    assert not planted.mark.exists(), "the planted file was imported"
    assert "Traceback" not in said
    assert code in (0, 2, 3), said
    assert code == 0 or not must_name_flag or "--plugin" in said, said
    return code


def every_third(**tables):
    """Parametrise by all combinations; the default tests try a third, in which every pair occurs."""
    chosen = []
    for places in product(*(range(len(values)) for values in tables.values())):
        values = [list(table)[place] for table, place in zip(tables.values(), places, strict=True)]
        marks = () if sum(places) % 3 == 0 else pytest.mark.thorough
        chosen.append(pytest.param(*values, marks=marks, id="-".join(map(str, values))))
    return pytest.mark.parametrize(tuple(tables), chosen)


@every_third(field=NAMES, reference=REFERENCES, verb=RUN_VERBS)
def test_a_run_folder_imports_nothing(planted, capsys, verb, reference, field):
    refuse_run(planted, capsys, verb, reference, field)


@every_third(field=NAMES, reference=["name in a file", "name in a module", "plain name"], verb=RUN_VERBS)
def test_nor_does_it_as_the_working_directory(planted, capsys, monkeypatch, verb, reference, field):
    """Its project files, packages and modules count as little as its config."""
    monkeypatch.chdir(planted.run)
    refuse_run(planted, capsys, verb, reference, field)


def refuse_run(planted, capsys, verb, reference, field):
    values = planted.values(NAMES[field], planted.spell(REFERENCES[reference]))
    (planted.run / "config.json").write_text(json.dumps(values))
    code = check(
        planted,
        RUN_VERBS[verb],
        capsys,
        must_name_flag=verb not in (*WITHOUT_CODE, *REFUSED_ANYWAY) and reference != "plain name",
    )
    assert code != 0 or verb in WITHOUT_CODE


@pytest.mark.parametrize(
    ("verb", "reference"), [("resume", "evil_code.py:Thing"), ("eval", "evil_code:Thing")]
)
@pytest.mark.parametrize("field", OTHERS)
def test_no_other_field_of_a_run_folder_imports_anything(
    planted, capsys, monkeypatch, verb, reference, field
):
    monkeypatch.chdir(planted.run)
    values = planted.values(OTHERS[field], reference)
    (planted.run / "config.json").write_text(json.dumps(values))
    check(planted, RUN_VERBS[verb], capsys, must_name_flag=False)


@every_third(field=NAMES, reference=REFERENCES, verb=FILE_VERBS)
@pytest.mark.parametrize(("suffix", "whole"), [("yaml", False), ("json", True)], ids=["one field", "whole"])
def test_a_config_file_imports_nothing(planted, capsys, verb, reference, field, suffix, whole):
    must_name_flag = verb == "train" and reference != "plain name"
    use_file(planted, NAMES[field], REFERENCES[reference], suffix, whole)
    check(planted, FILE_VERBS[verb], capsys, must_name_flag=must_name_flag)


@pytest.mark.parametrize("verb", FILE_VERBS)
@pytest.mark.parametrize("field", OTHERS)
@pytest.mark.parametrize(("suffix", "whole"), [("yaml", True), ("json", False)], ids=["whole", "one field"])
def test_no_other_field_of_a_config_file_imports_anything(planted, capsys, verb, field, suffix, whole):
    for reference in ("evil_code.py:Thing", "evil_code:Thing"):
        use_file(planted, OTHERS[field], reference, suffix, whole)
        check(planted, FILE_VERBS[verb], capsys, must_name_flag=False)


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("field", ["environment", "algorithm", "encoder"])
def test_a_benchmark_file_imports_nothing(planted, capsys, field, reference):
    code = planted.spell(REFERENCES[reference])
    values = {
        "environments": {"walk": {"environment": code if field == "environment" else "graphwalk"}},
        "algorithms": {"learner": {"algorithm": code if field == "algorithm" else "ppo"}},
        "settings": {"model.encoder.kind": code} if field == "encoder" else {},
    }
    planted.file = planted.folder / "grid.yaml"
    planted.file.write_text(yaml.safe_dump(values))
    assert check(planted, BENCHMARK, capsys, must_name_flag=reference != "plain name") == 2


@every_third(field=["env_name", "algorithm_name"], reference=REFERENCES)
def test_a_sweep_by_a_config_file_imports_nothing(planted, capsys, field, reference):
    use_file(planted, NAMES[field], REFERENCES[reference], "yaml", False)
    assert check(planted, ["sweep", "{file}", *SWEPT], capsys, must_name_flag=False) == 2


def use_file(planted, path, reference, suffix, whole):
    """Write the config file of a command line."""
    values = planted.values(path, planted.spell(reference))
    if not whole:
        values = {"env_name": "graphwalk", path[0]: values[path[0]]}
    planted.file = planted.folder / f"given.{suffix}"
    planted.file.write_text(json.dumps(values) if suffix == "json" else yaml.safe_dump(values))


@pytest.mark.parametrize("verb", NAME_VERBS)
def test_a_name_in_a_run_folder_imports_nothing(planted, capsys, monkeypatch, verb):
    """The folder lists plug-ins and holds the metadata of a package, neither of which counts there."""
    monkeypatch.chdir(planted.run)
    assert check(planted, NAME_VERBS[verb], capsys, must_name_flag=False) == 2


@pytest.mark.parametrize("words", HARMLESS)
def test_listing_imports_nothing(planted, capsys, monkeypatch, words):
    monkeypatch.chdir(planted.run)
    assert check(planted, HARMLESS[words], capsys, must_name_flag=False) == 0


def test_every_verb_is_tried():
    """Verbs of systems take no run folder, name no code, and read their environments by name."""
    tried = {words[0] for table in (RUN_VERBS, NAME_VERBS, HARMLESS) for words in table.values()}
    tried.add(BENCHMARK[0])
    assert set(GENERIC) - tried == {"bench"}


@pytest.mark.parametrize(
    "way",
    ["--plugin file", "--plugin=file", "--plugin module", "typed", "project", "toml", "absolute", "linked"],
)
def test_the_trap_would_snap(planted, capsys, monkeypatch, way):
    """Every way to allow code does import it, so that the other tests could fail."""
    reference = "evil_code:Thing" if "module" in way else "evil_code.py:Thing"
    values = planted.values(("env_name",), reference)
    (planted.run / "config.json").write_text(json.dumps(values))
    words = ["eval", str(planted.run)]
    if way == "project":
        (planted.folder / "pyproject.toml").write_text('[tool.edgewise]\nplugins = ["evil_code.py"]\n')
    elif way == "toml":
        (planted.folder / "edgewise.toml").write_text('plugins = ["evil_code.py"]\n')
    elif way == "linked":
        (planted.folder / "link.py").symlink_to("evil_code.py")
        words += ["--plugin", "link.py"]
    elif way == "absolute":
        words += ["--plugin", str(planted.folder / "evil_code.py")]
    elif way == "typed":
        words = ["train", "evil_code.py"]
    else:
        option, _, value = way.partition("=" if "=" in way else " ")
        value = {"file": "evil_code.py", "module": "evil_code"}[value]
        words += [f"{option}={value}"] if "=" in way else [option, value]
    assert main(words) == 2
    assert planted.mark.exists()
    assert "Thing" in capsys.readouterr().err or way == "typed"
