"""Requests that cannot fit are refused with the number and the setting, before anything is allocated."""

import json
import resource
import shutil

import pytest

import edgewise as ew
from edgewise.cli.main import main
from edgewise.config.errors import ConfigError
from edgewise.envs.registry import make_env
from edgewise.experiments import memory_check
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.experiments.memory_check import PER_PARAMETER, refuse_too_large
from edgewise.experiments.recipes import recipe
from edgewise.plugins import recipes
from edgewise.runs import zoo
from edgewise.scale import devices
from edgewise.scale.devices import in_bytes, refuse_out_of_memory, total_memory

REQUESTS = {
    "worlds": (["graphwalk-ppo", "--num-envs", "1000000000"], "training.num_envs"),
    "frames": (["graphwalk-ppo", "--rollout-length", "1000000000"], "training.rollout_length"),
    "nodes": (
        ["graphwalk-ppo", "--env.num-nodes", "1000000", "--curriculum", "[]"],
        "8 TB were asked for",
    ),
    "hidden": (["graphwalk-ppo", "--model.encoder.hidden", "1000000"], "model"),
    "networks of an off-policy agent": (
        ["swarm-sac", "--model.encoder.hidden", "1000000"],
        "or more parameters would take",
    ),
    "a prover": (["reasoning-countries", "--model.hidden", "1000000"], "or more parameters would take"),
    "replay": (["marine-quick", "--replay-size", "1000000000"], "kept transitions"),
    "replay on disk": (
        ["marine-quick", "--replay-size", "1000000000", "--replay-storage", "memmap"],
        "the disk",
    ),
    "threads": (["graphwalk-ppo", "--threads", "100000"], "1024"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_cannot_fit_is_refused(name, tmp_path, capsys):
    arguments, words = REQUESTS[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert main(["train", *arguments, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert "hint" in error or name == "threads"
    assert "Traceback" not in error
    assert not (tmp_path / "run").exists()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 500_000, f"{grown} kB were allocated"


@pytest.mark.parametrize("name", sorted(recipes()))
def test_every_recipe_fits(name):
    config = recipe(name).config
    if not getattr(config.env, "data", None) or name == "reasoning-countries":
        refuse_too_large(config)


def test_the_estimate_is_about_what_is_collected():
    """Twice the frames are twice the bytes, and the limit is where the memory of the machine is."""
    config = load_config("graphwalk-ppo")
    with pytest.raises(ConfigError, match=r"a batch of ([\d,]+) frames would take about") as refused:
        refuse_too_large(load_config(config, keywords={"rollout_length": 10**9}))
    assert in_bytes(total_memory()) in refused.value.message


def test_the_parameters_of_a_model_are_counted():
    with pytest.raises(ConfigError, match=r"the sizes of the model: [\d,]{17,} parameters would take about"):
        refuse_too_large(load_config("graphwalk-ppo", keywords={"model.encoder.hidden": 10**6}))


def test_errors_of_memory_are_refusals_and_others_are_not():
    with (
        pytest.raises(ConfigError, match="this run does not fit"),
        refuse_out_of_memory("this run", hint="less"),
    ):
        raise MemoryError
    with pytest.raises(RuntimeError, match="shapes"), refuse_out_of_memory("this run", hint="less"):
        raise RuntimeError("shapes do not match")


@pytest.mark.parametrize(
    ("count", "text"),
    [(12, "12 bytes"), (3.2e9, "3.2 GB"), (5e18, "5,000 PB")],
)
def test_bytes_as_text(count, text):
    assert in_bytes(count) == text


def test_worlds_that_cannot_fit_are_refused_by_the_environment():
    with pytest.raises(ConfigError, match=r"1,000,000,000,000 worlds of graphwalk .* need at least"):
        make_env("graphwalk", num_envs=10**12)


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "700", "a/memory.max": "500", "memory.max": "max"}, [700, 500]),
        ("0::/gone\n", {"memory.max": "900"}, [900]),
        ("5:cpu,memory:/x\n3:pids:/x\n", {"memory/x/memory.limit_in_bytes": "300"}, [300]),
        ("", {"memory.max": "900"}, []),
    ],
)
def test_the_limits_are_those_of_the_own_group_and_of_all_above(tmp_path, groups, limits, expected):
    for name, text in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    assert list(devices._group_limits(groups, mounted=tmp_path)) == expected


def test_a_forged_size_is_refused_before_anything_is_built(tmp_path, capsys):
    """Somebody else's folder whose config asks for a model of gigabytes, and whose checkpoint is small."""
    run = tmp_path / "run"
    shutil.copytree(zoo.run_path("zoo:graphwalk-ppo"), run)
    config = json.loads((run / "config.json").read_text())
    config["model"]["encoder"] |= {"hidden": 8000, "heads": 4}
    (run / "config.json").write_text(json.dumps(config))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert main(["eval", str(run), "--episodes", "2"]) == 3
    assert "parameters, but the checkpoint" in capsys.readouterr().err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_parameters_that_fit_one_by_one_are_refused_together(monkeypatch):
    """Two networks of an off-policy agent, each of them half of the memory."""
    config = load_config("swarm-sac")
    parameters = sum(each.numel() for each in Builder(config, num_envs=1).algorithm.networks.parameters())
    room = PER_PARAMETER * 4 * parameters
    monkeypatch.setattr(memory_check, "total_memory", lambda _: 3 * room)
    assert Builder(config, num_envs=1).algorithm
    monkeypatch.setattr(memory_check, "total_memory", lambda _: int(1.5 * room))
    with pytest.raises(ConfigError, match="or more parameters would take about"):
        Builder(config, num_envs=1).algorithm  # noqa: B018 - built when asked for


@pytest.mark.parametrize("name", ["marine-quick", "swarm-ddpg"])
def test_a_packed_policy_without_its_target_networks_is_loaded(name):
    assert ew.load_policy(f"zoo:{name}") is not None
