"""What goes wrong in a worker is said where the run learns, as if it had happened there."""

import pytest
import torch
from tests.isolation import isolated
from tests.scale.workers.runs import config_of, parts_of

from edgewise import plugins
from edgewise.cli.main import main
from edgewise.config.errors import ConfigError, IllegalActionError, NumericalStop
from edgewise.experiments.load import load_config
from edgewise.scale.workers import pool as pool_module
from edgewise.scale.workers import worker as worker_module
from edgewise.scale.workers.message import Failure, copied, failure_in, pack, unpack
from edgewise.scale.workers.worker import Blueprint, Worker
from edgewise.systems.graphwalk.env import GraphwalkEnv
from edgewise.training.iteration import Iteration


def test_an_error_of_the_user_keeps_its_kind_its_words_and_its_hint(monkeypatch):
    def advance(self, state, action):
        raise IllegalActionError("world 3 does not allow 7", hint="look at the mask")

    monkeypatch.setattr(GraphwalkEnv, "advance", advance)
    with pytest.raises(IllegalActionError, match="world 3") as caught:
        parts_of(config_of()).rollout.collect()
    assert caught.value.hint == "look at the mask"


def test_another_error_shows_where_it_happened(monkeypatch):
    monkeypatch.setattr(GraphwalkEnv, "advance", lambda self, state, action: 1 // 0)
    with pytest.raises(RuntimeError, match=r"(?s)a worker failed:.*ZeroDivisionError"):
        parts_of(config_of()).rollout.collect()


def test_numbers_that_are_not_finite_stop_the_run_with_the_input_saved(monkeypatch, tmp_path):
    observe = GraphwalkEnv.observe

    def broken(self, state):
        seen = observe(self, state)
        seen["graph"]["x"] = torch.full_like(seen["graph"]["x"], torch.nan)
        return seen

    config = config_of()
    parts = parts_of(config)
    monkeypatch.setattr(GraphwalkEnv, "observe", broken)
    with pytest.raises(NumericalStop, match=r"graph\.x"):
        Iteration(config.training, parts, tmp_path).next(0)
    assert list(tmp_path.glob("nonfinite-*.safetensors"))


def test_only_errors_of_ours_are_made_again():
    assert isinstance(Failure("ConfigError", "a", "b").error(), ConfigError)
    assert isinstance(Failure("SystemExit", "a").error(), RuntimeError)
    assert isinstance(Failure("TYPE_CHECKING", "a").error(), RuntimeError)
    told = unpack(
        copied(pack(Failure("X", "a", None, {"entries": {"x": torch.ones(2)}, "size": [2]}).to_state()))
    )
    assert failure_in(told).root["entries"]["x"].tolist() == [1.0, 1.0]


def test_other_versions_are_refused(monkeypatch):
    blueprint = Blueprint.of(config_of(), num_envs=3)
    monkeypatch.setattr(worker_module.run_folder, "versions", lambda: {**blueprint.versions, "torch": "1.0"})
    with pytest.raises(ConfigError, match=r"has torch 1\.0, and the run has"):
        Worker(blueprint)


ENVIRONMENT = """
import torch
import edgewise as ew
class LineConfig(ew.Config):
    max_steps: int = 5
class LineEnv(ew.GraphEnv[LineConfig]):
    def setup(self):
        self.graph = ew.GraphSpec(num_nodes=3, node_features=1, edges=ew.Explicit(num_edges=2))
        self.actions = ew.ChooseNode()
    def spawn(self, count):
        return {"at": torch.randint(3, (count,), generator=self.generator)}
    def advance(self, state, action):
        return ew.Transition({"at": action}, reward=(action == 2).float(), terminated=action == 2)
    def observe(self, state):
        count = len(state["at"])
        x = torch.nn.functional.one_hot(state["at"], 3).float().unsqueeze(-1)
        index = torch.tensor([[0, 1], [1, 2]]).expand(count, 2, 2)
        masks = {"node_mask": torch.ones(count, 3).bool(), "edge_mask": torch.ones(count, 2).bool()}
        return {"graph": {"x": x, "edge_index": index, **masks}}
"""


def test_a_worker_imports_what_the_user_named_and_refuses_other_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "line.py"
    file.write_text(ENVIRONMENT)
    with isolated():
        plugins.allow_typed(["line.py"])
        config = load_config("line.py", keywords={"num_envs": 4, "rollout_length": 2, "workers": 2})
        blueprint = Blueprint.of(config, num_envs=2)
    assert str(file) in blueprint.plugins
    with isolated():
        Worker(Blueprint.from_json(blueprint.to_json()))
    file.write_text(ENVIRONMENT + "\nCHANGED = 1\n")
    with isolated(), pytest.raises(ConfigError, match=r"other code than the run: .*line\.py has changed"):
        Worker(Blueprint.from_json(blueprint.to_json()))
    file.unlink()
    with isolated(), pytest.raises(ConfigError, match=r"line\.py"):
        Worker(Blueprint.from_json(blueprint.to_json()))


@pytest.mark.parametrize("address", ["10.0.0.1:6379", "auto"])
def test_a_file_cannot_choose_what_to_connect_to(address, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.yaml"
    text = f"recipe: graphwalk-ppo\nworkers: 2\nray: {{address: '{address}'}}\ntraining: {{num_envs: 4}}\n"
    file.write_text(text)

    def connect(*given, **named):
        raise AssertionError("it connects")

    monkeypatch.setattr(pool_module, "connect", connect)
    with isolated():
        assert main(["train", "mine.yaml"]) == 2
        assert f"--ray.address {address}" in capsys.readouterr().err
        assert not (tmp_path / "runs").exists()
        with pytest.raises(AssertionError, match="it connects"):
            main(["train", "mine.yaml", "--ray.address", address])


def test_words_from_a_file_name_no_cluster():
    with isolated():
        plugins.require_allowed(["--workers=2", "--num-envs=auto", "--ray.timeout=3"])
        for flag in ("--ray.address", "--address"):
            with pytest.raises(ConfigError, match="a file cannot choose what edgewise connects to"):
                plugins.require_allowed([f"{flag}=10.0.0.1:6379"])
        plugins.allow_typed(["--ray.address", "10.0.0.1:6379"])
        plugins.require_allowed(["--ray.address=10.0.0.1:6379"])
