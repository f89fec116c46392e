"""Files of marine schedules load unchanged, mean what they always meant, and say what is wrong with them."""

import json
from pathlib import Path

import pytest
import torch

from edgewise.cli.main import main
from edgewise.config.errors import ConfigError
from edgewise.config.schedules import Constant, Linear
from edgewise.experiments.launch import make_parts
from edgewise.systems.marine.schedules.file import load_schedules

STAGES = {
    "num_robots": [2, 4],
    "num_cores": [4, 8],
    "num_obstacles": [4, 8],
    "min_start_goal_dis": [20.0, 30.0],
}
DOCUMENT = {
    "seed": 0,
    "total_timesteps": 1000000,
    "eval_freq": 50000,
    "imitation_learning": False,
    "agent_type": "AC-IQN",
    "save_dir": "./logs",
    "training_schedule": {"timesteps": [0, 500000], **STAGES},
    "eval_schedule": {"num_episodes": [10, 10], **STAGES},
}


def written(folder, **changes):
    """The document with some entries changed, `section__field` for those of schedules; `...` for none."""
    document = json.loads(json.dumps(DOCUMENT))
    for name, value in changes.items():
        section, _, field = name.rpartition("__")
        holder = document[section] if section else document
        holder[field] = value
        if value is ...:
            del holder[field]
    path = folder / "schedules.json"
    path.write_text(json.dumps(document, indent=1))
    return path


def test_it_means_what_it_always_meant(tmp_path):
    ((config, folder),) = load_schedules(written(tmp_path))
    assert (config.recipe, config.seed, folder) == ("marine-ac-iqn", 0, Path("./logs"))
    assert config.env.capacity == (4, 8, 8)
    assert config.env.actions == "continuous"
    assert config.training.total_frames == 1_000_000
    first, last = config.training.curriculum
    assert first.env == {
        "num_robots": 2,
        "num_cores": 4,
        "num_obstacles": 4,
        "min_start_goal_dis": 20.0,
    }
    assert first.until.frames == 500_000
    assert last.env["num_robots"] == 4
    assert last.until is None
    assert config.training.schedules["epsilon"] == Linear(start=0.6, end=0.05, frames=250_000)
    assert config.algorithm.learning_starts == 2000
    measured = config.evaluation
    assert (measured.every, measured.seed, config.checkpoint.every) == (50_000, 253, 50_000)
    assert [stage.episodes for stage in measured.stages] == [10, 10]
    assert measured.stages[1].settings == last.env
    assert measured.settings == {"end_at_first_collision": True, "max_steps": 1000}
    assert config.env.max_steps == 1000


def test_lists_are_all_combinations(tmp_path):
    path = written(tmp_path, seed=[3, 5], agent_type=["DQN", "rainbow", "SAC"], eval_freq=[10, 20])
    runs = [(config.recipe, config.seed, config.evaluation.every) for config, _ in load_schedules(path)]
    agents = ("marine-dqn", "marine-rainbow", "marine-sac")
    assert runs == [(agent, seed, every) for agent in agents for seed in (3, 5) for every in (10, 20)]


@pytest.mark.parametrize("agent", ["AC-IQN", "IQN", "DDPG", "DQN", "SAC", "Rainbow"])
def test_every_agent_has_its_recipe_and_actions(tmp_path, agent):
    ((config, _),) = load_schedules(written(tmp_path, agent_type=agent))
    assert config.recipe == f"marine-{agent.lower()}"
    assert config.env.actions == ("discrete" if agent in ("IQN", "DQN", "Rainbow") else "continuous")


def test_rainbow_keeps_its_rising_weights(tmp_path):
    ((config, _),) = load_schedules(written(tmp_path, agent_type="Rainbow"))
    assert config.training.schedules["beta"] == Linear(start=0.4, end=1.0)


def test_flags_come_over_the_file(tmp_path):
    flags = [("--device", "cuda"), ("--updates-per-transition", "0.125")]
    ((config, _),) = load_schedules(written(tmp_path), flags=flags)
    assert config.device == "cuda"
    assert config.algorithm.updates_per_transition == 0.125


SMALL = {"num_envs": 4, "rollout_length": 8, "env.max_steps": 20, "replay_size": 500}
LEARNING = {"cloning_coefficient": 0.5, "minibatch_size": 16, "updates_per_transition": 0.5}


@pytest.mark.parametrize("agent", ["DQN", "AC-IQN"])
def test_an_expert_leads_where_imitation_is_asked_for(tmp_path, agent):
    path = written(tmp_path, agent_type=agent, imitation_learning=True)
    flags = [(f"--{name}", str(value)) for name, value in (SMALL | LEARNING).items()]
    ((config, _),) = load_schedules(path, flags=flags)
    assert (config.algorithm.expert, config.algorithm.expert_share) == ("apf", 1.0)
    assert config.algorithm.learning_starts == 0
    assert config.training.schedules["epsilon"] == Constant(value=0.0)
    parts = make_parts(config)
    batch = parts.rollout.collect()
    metrics = parts.algorithm.learn(batch)
    assert metrics["updates"] > 0
    assert any(name.startswith("cloning_") for name in metrics)
    again = make_parts(config).rollout.collect()
    active = batch["agents", "active"]
    assert torch.equal(batch["action"][active], again["action"][active])


WRONG = {
    "an unknown agent": ({"agent_type": "DQM"}, "agent_type: got DQM; did you mean DQN"),
    "an unknown name": ({"total_timestep": 5}, "total_timestep: unknown field; did you mean total_timesteps"),
    "lists of unequal length": (
        {"training_schedule__num_robots": [2]},
        "training_schedule: every list needs one entry for each stage, but they have: num_robots 1",
    ),
    "a late begin": (
        {"training_schedule__timesteps": [5, 10]},
        "timesteps must begin with 0, the first stage; got 5",
    ),
    "falling steps": ({"training_schedule__timesteps": [0, 0]}, r"timesteps must increase, got \[0, 0\]"),
    "no schedule": ({"eval_schedule": ...}, "eval_schedule: is missing"),
    "a word for a number": ({"total_timesteps": "many"}, "line 3: total_timesteps"),
    "no robot": ({"training_schedule__num_robots": [0, 4]}, "there must be at least 1 robot"),
    "too far": (
        {"eval_schedule__min_start_goal_dis": [20, 900]},
        "min_start_goal_dis must be between 0 and 60 m",
    ),
    "foreign weights": ({"load_model": "old.pth"}, "load_model old.pth: weights of other programs"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_said_with_file_and_field(tmp_path, wrong):
    changes, message = WRONG[wrong]
    path = written(tmp_path, **changes)
    with pytest.raises(ConfigError, match=message) as caught:
        load_schedules(path)
    assert "schedules.json" in caught.value.message


def test_a_stage_that_cannot_be_is_named_as_in_the_file(tmp_path):
    path = written(tmp_path, training_schedule__min_start_goal_dis=[20, 70])
    with pytest.raises(ConfigError, match=r"line \d+: training_schedule, stage 2: .*min_start_goal_dis"):
        load_schedules(path)


def test_the_command_line_trains_one_run_after_another(tmp_path, capsys):
    path = written(
        tmp_path,
        agent_type=["DQN", "SAC"],
        total_timesteps=64,
        eval_freq=32,
        save_dir=str(tmp_path / "logs"),
        training_schedule__timesteps=[0, 32],
        training_schedule__num_cores=[0, 2],
        eval_schedule__num_cores=[0, 2],
        eval_schedule__num_episodes=[1, 2],
    )
    flags = ["--num-envs", "4", "--max-steps", "10", "--replay-size", "300", "--learning-starts", "0"]
    assert (
        main(["marine", "train", str(path), "--device", "cpu", "--minibatch-size", "8", *flags, "--json"])
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    runs = [Path(run["run"]) for run in told["runs"]]
    assert [run.name for run in runs] == ["marine-dqn-seed0-1", "marine-sac-seed0-1"]
    assert all(run.parent == tmp_path / "logs" for run in runs)
    for run in runs:
        stages = [json.loads(line)["name"] for line in _events(run) if '"stage"' in line]
        assert [name[0] for name in stages] == ["1", "2"]
        header, *rows = (run / "metrics.csv").read_text().splitlines()
        assert "evaluation/success.2-4-robots-2-cores-8-obstacles-30m" in header
        assert len(rows) >= 2


def _events(run):
    return (run / "events.jsonl").read_text().splitlines()
