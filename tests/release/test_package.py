"""The built packages, installed beside torch in a new environment, work where nothing of ours is."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import edgewise as ew
from edgewise.runs.zoo import zoo_names

ROOT = Path(__file__).resolve().parents[2]
SMALL = [
    *("--total-frames", "64", "--num-envs", "4", "--rollout-length", "8", "--hidden", "8", "--heads", "2"),
    *("--layers", "1", "--evaluation.episodes", "4", "--tensorboard", "false"),
]
OWN = """
import torch

import edgewise as ew


class LineConfig(ew.Config):
    num_nodes: ew.WholeRange = (4, 6)
    max_steps: int = 5


class LineEnv(ew.GraphEnv[LineConfig]):
    def setup(self):
        nodes = ew.upper_bound(self.config.num_nodes)
        self.graph = ew.GraphSpec(nodes, node_features=1, edges=ew.Nearest(2), position_dim=2)
        self.actions = ew.ChooseNode()

    def spawn(self, count):
        slots = torch.arange(self.graph.num_nodes, device=self.device)
        exists = slots < self.sample_int(self.config.num_nodes, count).unsqueeze(-1)
        place = torch.rand(*exists.shape, 2, generator=self.generator, device=self.device)
        return {"place": place, "exists": exists}

    def advance(self, state, action):
        reward = state["place"][..., 0].gather(-1, action.unsqueeze(-1)).squeeze(-1)
        return ew.Transition({}, reward=reward, terminated=torch.zeros_like(reward, dtype=torch.bool))

    def observe(self, state):
        x = state["place"][..., :1]
        return {"graph": {"x": x, "pos": state["place"], "node_mask": state["exists"]}}

    def mask(self, state):
        return state["exists"]
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folder with the wheel and the source distribution of this tree."""
    pytest.importorskip("hatchling", reason="building packages needs pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    for kind in ("wheel", "sdist"):
        program = f"import hatchling.build; hatchling.build.build_{kind}({str(folder)!r})"
        subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.mark.thorough
def test_both_packages_hold_what_a_user_needs(built):
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.name == f"edgewise-{ew.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"edgewise-{ew.__version__}.dist-info/METADATA").decode()
    assert {f"edgewise/zoo/{name}/card.json" for name in zoo_names()} <= names
    assert {"edgewise/py.typed", "edgewise/report/assets/page.html"} <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]
    assert "Requires-Python: >=3.11" in metadata
    assert "License-Expression: MIT" in metadata
    with tarfile.open(sdist) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "README.md",
        "CHANGELOG.md",
        "tests/conftest.py",
        "examples/tsp/tsp.py",
        "docs/conf.py",
    } <= sources
    assert {f"src/edgewise/zoo/{name}/card.json" for name in zoo_names()} <= sources


@pytest.fixture(scope="module", params=["*.whl", "*.tar.gz"], ids=["wheel", "sdist"])
def installed(request, built, tmp_path_factory):
    """A function that runs the installed program in a folder of its own; torch was there before."""
    place = tmp_path_factory.mktemp("user")
    venv, folder = place / "venv", place / "work"
    folder.mkdir()
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL"))}
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, env=clean)
    (site,) = venv.glob("lib/python*/site-packages")
    paths = [path for path in sys.path if path.endswith("site-packages")]
    (site / "packages.pth").write_text("\n".join([*paths, sysconfig.get_path("purelib")]) + "\n")
    (package,) = built.glob(request.param)
    pip = [str(venv / "bin/python"), "-m", "pip", "install", "--quiet", "--no-build-isolation"]
    done = subprocess.run(
        [*pip, str(package)], cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

    def run(*command, program="edgewise"):
        place = venv / "bin" / program
        found = subprocess.run(
            [str(place), *map(str, command)],
            cwd=folder,
            env=clean,
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    origin = run("-c", "import edgewise; print(edgewise.__file__)", program="python")
    assert Path(origin).is_relative_to(site)
    run.folder = folder
    return run


@pytest.mark.thorough
def test_an_installed_package_works_from_anywhere(installed):
    assert installed("--version").split()[-1] == ew.__version__
    installed("train", "graphwalk-ppo", *SMALL, "--out", "walk")
    assert (installed.folder / "walk/report.html").is_file()
    (installed.folder / "line.py").write_text(OWN)
    installed("envs", "check", "line.py")
    installed("train", "line.py", *SMALL, "--out", "line")
    installed("eval", "line", "--num-nodes", "9", "--episodes", "4", "--plugin", "line.py")
    listed = json.loads(installed("zoo", "--json"))
    assert [one["name"] for one in listed] == zoo_names()
    name = f"zoo:{listed[0]['name']}"
    installed("eval", name, "--episodes", "4")
    installed("report", name)
    assert (installed.folder / f"{listed[0]['name']}-report.html").is_file()
    installed("export", name, "--to", "pt2", "--out", "policy")
    assert (installed.folder / "policy/policy.pt2").is_file()
    assert not (installed.folder / "runs").exists()
