"""The import contracts hold, and each of them would notice a violation."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = Path(sys.executable).with_name("lint-imports")

pytestmark = pytest.mark.skipif(not LINT.exists(), reason="import-linter is not installed")

UPWARD = {
    "config/model.py": "edgewise.graphs",
    "graphs/spec.py": "edgewise.models",
    "models/heads.py": "edgewise.objectives",
    "models/build.py": "edgewise.envs",
    "envs/base.py": "edgewise.data",
    "data/rollout.py": "edgewise.objectives",
    "objectives/returns.py": "edgewise.algorithms",
    "algorithms/ppo.py": "edgewise.evaluation",
    "evaluation/statistics.py": "edgewise.training",
    "training/trainer.py": "edgewise.report",
    "report/page.py": "edgewise.training",
    "search/mcts.py": "edgewise.algorithms",
    "experiments/build.py": "edgewise.systems",
    "terminal/console.py": "edgewise.systems.graphwalk",
    "studies/sweep.py": "edgewise.systems.graphwalk",
    "problems/tsp.py": "edgewise.benchmark",
    "benchmark/run.py": "edgewise.cli",
    "systems/graphwalk/env.py": "edgewise.cli",
    "plugins/trust.py": "edgewise.systems",
    "runs/folder.py": "edgewise.evaluation",
    "scale/processes/group.py": "edgewise.graphs",
    "scale/workers/worker.py": "edgewise.experiments",
}
FORBIDDEN = {
    "systems/graphwalk/dynamics.py": "tensordict",
    "systems/hex/env.py": "edgewise.systems.graphwalk.env",
    "systems/graphwalk/__init__.py": "torch",
    "systems/graphwalk/config.py": "torch",
    "systems/graphwalk/recipes/ppo.py": "torch",
    "systems/swarm/models/config.py": "torch",
    "config/run.py": "torch",
    "models/config.py": "torch",
    "experiments/load.py": "torch",
    "studies/scheduler.py": "torch",
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT, "--no-cache", "--config", folder / "pyproject.toml"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def skeleton(tmp_path_factory) -> Path:
    """A package with our folders and file names and no code, which keeps our contracts."""
    folder = tmp_path_factory.mktemp("skeleton")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for file in (ROOT / "src" / "edgewise").rglob("*.py"):
        copy = folder / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.touch()
    clean = lint(folder)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    return folder


def test_the_package_keeps_its_contracts():
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("file", "imported"), [*UPWARD.items(), *FORBIDDEN.items(), ("plugins/trust.py", "torch")]
)
def test_a_planted_violation_is_noticed(skeleton, file, imported):
    planted = skeleton / "src" / "edgewise" / file
    assert planted.exists()
    planted.write_text(f"import {imported}\n")
    try:
        assert lint(skeleton).returncode == 1
    finally:
        planted.write_text("")
