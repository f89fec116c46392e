"""A number that is not finite stops the run in the same iteration, wherever it is, and is kept for a look."""

import json

import pytest
import torch
from safetensors.torch import load_file
from tensordict import TensorDict
from tests.runs.states import same
from tests.training.toys import run, toy_config, toy_parts

from edgewise.config.errors import NumericalStop
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.folder import RunFolder
from edgewise.training import health
from edgewise.training.episodes import EpisodeMeter

BAD = [float("nan"), float("inf"), -float("inf")]


def on_batch(parts, number, spoil):
    """Let `spoil` change the `number`-th batch before the algorithm sees it."""
    collect, count = parts.rollout.collect, [0]

    def spoilt():
        batch = collect()
        count[0] += 1
        if count[0] == number:
            spoil(batch)
        return batch

    parts.rollout.collect = spoilt
    return parts


def reward(parts, bad):
    return on_batch(parts, 3, lambda batch: batch["next", "reward"][1, 2].fill_(bad))


def observation(parts, bad):
    return on_batch(parts, 3, lambda batch: batch["graph", "x"][1, 2, 0].fill_(bad))


def last_observation(parts, bad):
    return on_batch(parts, 3, lambda batch: batch["next", "graph", "x"][1, -1, 0].fill_(bad))


def seen_by_the_policy(parts, bad):
    """The environment itself breaks in the middle of a batch, and the policy cannot act on it."""
    observe, forward = parts.env.observe, parts.algorithm.policy.forward

    def broken(state):
        seen = observe(state)
        if parts.algorithm.batches == 2 and int(state["step"][0]) == 1:
            seen["graph"]["x"][0, 0] = bad
        return seen

    def strict(tensordict):
        if not bool(tensordict["graph", "x"].isfinite().all()):
            raise RuntimeError("probabilities must not be negative")
        return forward(tensordict)

    parts.env.observe, parts.algorithm.policy.forward = broken, strict
    return parts


def loss(parts, bad):
    learn, count = parts.algorithm.learn, [0]

    def spoilt(batch):
        count[0] += 1
        metrics = learn(batch)
        return {**metrics, "loss": torch.tensor(bad)} if count[0] == 3 else metrics

    parts.algorithm.learn = spoilt
    return parts


def gradient(parts, bad):
    """Only the gradient breaks: the algorithm itself tells of nothing."""
    weight, count = parts.algorithm.policy.score.weight, [0]

    def spoil(grad):
        count[0] += 1
        return grad * bad if count[0] == 3 else grad

    weight.register_hook(spoil)
    learn = parts.algorithm.learn

    def silent(batch):
        learn(batch)
        return {}

    parts.algorithm.learn = silent
    return parts


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(
    "inject", [reward, observation, last_observation, seen_by_the_policy, loss, gradient]
)
def test_it_is_caught_in_the_same_iteration(tmp_path, inject, bad):
    config = toy_config(checkpoint={"every": 16})
    folder = RunFolder.create(tmp_path / "run", config.to_plain())
    with pytest.raises(NumericalStop) as error:
        run(folder, config, parts=inject(toy_parts(config), bad))
    assert error.value.exit_code == 4
    assert "after 32 frames" in error.value.message
    good = folder.checkpoints / "step-000000000032"
    assert f"the last good checkpoint is {good}" in error.value.message
    assert checkpoint.latest(folder.checkpoints) == good
    dump = folder.path / "nonfinite-000000000032.safetensors"
    assert str(dump) in str(error.value)
    assert "graph.x" in load_file(dump)
    assert json.loads(dump.with_suffix(".json").read_text())["causes"]
    events = [json.loads(line) for line in (folder.path / "events.jsonl").read_text().splitlines()]
    assert events[-1]["event"] == "stop"
    assert "not finite" in events[-1]["reason"]


def test_the_dump_holds_the_bad_number(tmp_path):
    config = toy_config()
    folder = RunFolder.create(tmp_path / "run", config.to_plain())
    with pytest.raises(NumericalStop, match=r"next\.reward"):
        run(folder, config, parts=reward(toy_parts(config), float("nan")))
    dumped = load_file(next(folder.path.glob("nonfinite-*.safetensors")))
    assert dumped["next.reward"].isnan().nonzero().tolist() == [[1, 2, 0]]


def test_a_stopped_run_goes_on_from_its_last_good_checkpoint(tmp_path):
    config = toy_config(checkpoint={"every": 16})
    whole = run(tmp_path / "whole", config)
    folder = RunFolder.create(tmp_path / "run", config.to_plain())
    with pytest.raises(NumericalStop):
        run(folder, config, parts=gradient(toy_parts(config), float("nan")))
    run(folder, config)
    left, right = (
        checkpoint.load(checkpoint.latest(one.checkpoints))["algorithm"] for one in (whole, folder)
    )
    assert same(left, right)


def test_a_mistake_in_the_code_is_not_blamed_on_numbers(tmp_path):
    config = toy_config()
    parts = toy_parts(config)

    def broken(batch):
        raise RuntimeError("a mistake")

    parts.algorithm.learn = broken
    with pytest.raises(RuntimeError, match="a mistake"):
        run(tmp_path / "run", config, parts=parts)


def test_padding_and_the_simulator_may_hold_anything():
    nan = float("nan")
    graph = {
        "x": torch.tensor([[[1.0], [nan]]]),
        "pos": torch.tensor([[[1.0], [nan]]]),
        "node_mask": torch.tensor([[True, False]]),
        "edge_attr": torch.tensor([[[nan], [2.0]]]),
        "edge_mask": torch.tensor([[False, True]]),
    }
    fine = TensorDict(
        {"graph": graph, "state": {"x": torch.tensor([nan])}, "metrics": {"score": torch.tensor([nan])}},
        batch_size=[1],
    )
    assert health.to_host(health.finite(fine)) == {"graph.x": 1.0, "graph.pos": 1.0, "graph.edge_attr": 1.0}
    for name in ("x", "pos", "edge_attr"):
        bad = fine.clone()
        bad["graph", name].fill_(nan)
        assert health.to_host(health.finite(bad))[f"graph.{name}"] == 0.0


def test_one_wait_for_the_device(monkeypatch):
    waits = []
    monkeypatch.setattr(torch.Tensor, "tolist", _counted(torch.Tensor.tolist, waits))
    monkeypatch.setattr(torch.Tensor, "item", _counted(torch.Tensor.item, waits))
    monkeypatch.setattr(torch.Tensor, "__bool__", _counted(torch.Tensor.__bool__, waits))
    values = {"a": torch.tensor(1.5), "b": torch.tensor(True), "c": torch.tensor(3)}
    assert health.to_host(values) == {"a": 1.5, "b": 1.0, "c": 3.0}
    assert len(waits) == 1


def _counted(original, calls):
    def counted(*args, **kwargs):
        calls.append(original)
        return original(*args, **kwargs)

    return counted


def test_gradients_are_told_per_layer():
    module = torch.nn.ModuleDict(
        {
            "blocks": torch.nn.ModuleList([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)]),
            "head": torch.nn.Linear(1, 1),
        }
    )
    for index, parameter in enumerate(module.parameters()):
        parameter.grad = torch.full_like(parameter, float(index + 1))
    batch = TensorDict({}, batch_size=[1, 1])
    told = health.to_host(health.diagnostics(module, batch))
    assert told["blocks.0/gradient_norm"] == pytest.approx((1 + 4) ** 0.5)
    assert told["blocks.1/gradient_norm"] == pytest.approx((9 + 16) ** 0.5)
    assert told["head/gradient_norm"] == pytest.approx((25 + 36) ** 0.5)


def test_nothing_waits_for_the_device(fake_device):
    """On a device without values, watching a batch still runs: it never asks for one."""
    size = (3, 4)
    active = torch.ones(*size, 2, dtype=torch.bool, device=fake_device)
    batch = TensorDict(
        {
            "graph": {
                "x": torch.zeros(*size, 5, 2, device=fake_device),
                "node_mask": torch.ones(*size, 5, dtype=torch.bool, device=fake_device),
            },
            "agents": {"active": active},
            "next": {
                "reward": torch.zeros(*size, 2, 1, device=fake_device),
                "done": torch.zeros(*size, 1, dtype=torch.bool, device=fake_device),
            },
        },
        batch_size=size,
    )
    meter = EpisodeMeter()
    found = [health.finite(batch), meter.update(batch), meter.update(batch)]
    module = torch.nn.Linear(2, 1, device=fake_device)
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    found.append(health.diagnostics(module, batch))
    values = [value for values in found for value in values.values()]
    assert len(values) > 8
    assert {value.device for value in values} == {fake_device}


def observed(number):
    return TensorDict({"graph": {"x": torch.tensor([number])}})


def failing(*observations):
    """Fail in a function that holds the last observation, called by one that holds the one before it."""
    held = observations[0]
    if len(observations) == 1:
        raise RuntimeError("a mistake")
    failing(*observations[1:])
    assert held is not None


@pytest.mark.parametrize(
    ("numbers", "index"),
    [
        pytest.param((1.0, 2.0), 1, id="the innermost one"),
        pytest.param((float("nan"), 2.0), 0, id="one that is not finite"),
        pytest.param((float("nan"), float("inf"), 1.0), 1, id="the innermost one that is not finite"),
    ],
)
def test_the_observation_of_an_error(numbers, index):
    observations = [observed(number) for number in numbers]
    with pytest.raises(RuntimeError) as caught:
        failing(*observations)
    assert health.observation_of(caught.value) is observations[index]


def test_an_error_without_an_observation_has_none():
    with pytest.raises(ZeroDivisionError) as caught:
        1 / 0  # noqa: B018
    assert health.observation_of(caught.value) is None
    with pytest.raises(ValueError, match="far away") as caught:
        health.raise_for(seen := observed(1.0), ValueError("far away"))
    assert health.observation_of(caught.value) is seen
