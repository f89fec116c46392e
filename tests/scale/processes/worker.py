"""One of two processes that check that they compute together what one process computes alone.

    python -m tests.scale.processes.worker FOLDER CHECK ...

`pair.py` starts both, with their places in the environment. Every process writes the results of its checks,
by name, to `FOLDER/RANK.json`.
"""

import hashlib
import json
import sys
import traceback
from pathlib import Path
from unittest.mock import patch

import torch
from benchmarks.kill_resume import RECIPES, SMALL, UNUSED, differences

from edgewise.config.errors import EdgewiseError
from edgewise.data.prioritised import PrioritisedSampler
from edgewise.experiments.build import Builder
from edgewise.experiments.launch import resume, start
from edgewise.experiments.load import load_config
from edgewise.models.agents.arctan import _HALF_LOG_TWO_PI, ArctanNormal, log_slope, squash
from edgewise.objectives.average_reward import AverageReward
from edgewise.objectives.masked import explained_variance, mean_of_all, standardise, variance_of_all
from edgewise.objectives.value_norm import ValueNorm
from edgewise.scale.processes.group import this_group
from edgewise.training.callbacks import Callback, StopTraining

UPDATES = 20
SMALL_MODEL = {"model.encoder.hidden": 16, "model.encoder.layers": 1}
ON_POLICY = {
    "graphwalk": ("graphwalk-ppo", {"training.num_envs": 8, "training.rollout_length": 20}),
    "swarm": (
        "swarm-mappo",
        {
            "env.num_agents": [1, 4],
            "training.num_envs": 8,
            "training.rollout_length": 20,
            "algorithm.normalise_value": True,
        },
    ),
    "hex": (
        "hex-selfplay",
        {
            "env.size": 3,
            # At this rate, differences by rounding stay small over twenty updates.
            "algorithm.learning_rate": 2e-4,
            "training.num_envs": 8,
            "training.rollout_length": 20,
        },
    ),
}
OFF_POLICY = {
    "dqn": {"algorithm.mixing": "none", "algorithm.n_step": 2},
    "mixed": {"algorithm.mixing": "monotone"},
    "sac": {"env.continuous": True},
}


def halves(count, rank):
    return slice(rank * count // 2, (rank + 1) * count // 2)


def weights_of(algorithm):
    state = algorithm.state_dict()
    name = next(key for key in ("actor_critic", "networks", "actor") if key in state)
    return state[name]


def gradients_of(algorithm):
    """The gradients of the last update."""
    module = next(
        getattr(algorithm, name) for name in ("actor_critic", "networks", "actor") if hasattr(algorithm, name)
    )
    return {
        name: torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for name, parameter in module.named_parameters()
    }


def apart(one, other):
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def fingerprint(weights):
    content = b"".join(weights[name].contiguous().numpy().tobytes() for name in sorted(weights))
    return hashlib.sha256(content).hexdigest()


def compared(group, single, own):
    """How far the weights of this process are from those of one alone, and whether processes are equal."""
    prints = group.gather(fingerprint(weights_of(own)))
    one, other = gradients_of(single), gradients_of(own)
    largest = max(float(gradient.abs().max()) for gradient in one.values())
    return {
        "apart": apart(weights_of(single), weights_of(own)),
        "gradients_apart": apart(one, other) / largest,
        "equal": len(set(prints)) == 1,
    }


def made(group, config):
    """The algorithm of one process and that of this process of two, from the same config; and the builder."""
    alone = Builder(config)
    return alone.algorithm, Builder(config, group=group).algorithm, alone


def check_collectives(group):
    rank, size = group.rank, group.size
    own = torch.tensor([1.0 + rank, 10.0 * rank])
    linear = torch.nn.Linear(2, 1)
    linear.weight.grad = torch.full((1, 2), float(rank + 1))
    untouched = own.clone()
    group.average_gradients(linear.parameters())
    return {
        "size": size,
        "sum": group.sum(own).tolist(),
        "mean": group.mean(own).tolist(),
        "max": group.max(own).tolist(),
        "min": group.min(own).tolist(),
        "whole": int(group.sum(torch.tensor(2**40 + rank))),
        "own": torch.equal(own, untouched),
        "weights": group.weights(torch.tensor([3, 0]) if rank == 0 else torch.tensor([1, 0])).tolist(),
        "gathered": group.gather({"rank": rank, "text": "ü" * (rank + 1), "none": None}),
        "told": group.broadcast([1.5, float("inf")] if rank == 0 else "ignored"),
        "gradients": [linear.weight.grad.tolist(), linear.bias.grad.tolist()],
    }


def check_statistics(group):
    """Means and variances over both processes against those of one that has all entries."""
    torch.manual_seed(0)
    values, mask = torch.randn(10, 3) * 5 + 2, torch.rand(10, 3) < 0.4
    mine = slice(0, 7) if group.rank == 0 else slice(7, 10)
    found = {}
    for name, kept in (("masked", mask), ("all", None), ("empty", torch.zeros_like(mask))):
        part = None if kept is None else kept[mine]
        norm, gain = (
            {"one": ValueNorm(0.9), "two": ValueNorm(0.9)},
            {"one": AverageReward(0.9), "two": AverageReward(0.9)},
        )
        for _ in range(2):
            norm["one"].update(values, kept)
            norm["two"].update(values[mine], part, group=group)
            gain["one"].update(values, value=values * 0, next_value=values / 2, mask=kept)
            gain["two"].update(
                values[mine], value=values[mine] * 0, next_value=values[mine] / 2, mask=part, group=group
            )
        pairs = {
            "mean": (mean_of_all(values, kept), mean_of_all(values[mine], part, group=group)),
            "variance": (
                variance_of_all(values, kept, correction=1),
                variance_of_all(values[mine], part, correction=1, group=group),
            ),
            "standardised": (
                standardise(values, kept)[mine],
                standardise(values[mine], part, group=group),
            ),
            "explained": (
                explained_variance(values.cos(), values, kept),
                explained_variance(values.cos()[mine], values[mine], part, group=group),
            ),
            "norm": (norm["one"].variance, norm["two"].variance),
            "norm_mean": (norm["one"].mean, norm["two"].mean),
            "gain": (gain["one"].mean, gain["two"].mean),
        }
        found |= {
            f"{name} {key}": float((one - two).abs().max() / one.abs().max().clamp(min=1))
            for key, (one, two) in pairs.items()
        }
    return found


def check_prioritised(group):
    """Importance weights and the priority of new items against those of one buffer."""
    sampler = PrioritisedSampler(8, alpha=1.0, beta=0.5, floor=0.0, group=group)
    sampler._rng = torch.Generator().manual_seed(group.rank)
    own = torch.tensor([1.0, 2.0, 5.0]) if group.rank == 0 else torch.tensor([4.0, 40.0, 4.0])
    sampler.extend(torch.arange(3))
    sampler.update_priority(torch.arange(3), own)
    index, found = sampler.sample(range(3), 6)
    probability = own.double() / own.double().sum() / 2
    chosen = group.gather(probability[index].tolist())
    least = min(value for each in chosen for value in each)
    expected = (probability[index] / least).pow(-0.5)
    sampler.share_largest()
    sampler.extend(torch.tensor([3]))
    newest = sampler._table.at(torch.tensor([3]))
    return {
        "difference": float((found["priority_weight"] - expected).abs().max()),
        "largest": max(group.gather(float(found["priority_weight"].max()))),
        "newest": float(newest),
    }


def check_ppo(group, name):
    """One update, and twenty, on one recorded batch with the same minibatches."""
    recipe, settings = ON_POLICY[name]
    found = {}
    for label, epochs, parts in (("one", 1, 1), ("twenty", 4, 5)):
        size = 8 * 20 // parts
        config = load_config(
            recipe,
            keywords={
                **SMALL_MODEL,
                "training.curriculum": [],
                **settings,
                "algorithm.epochs": epochs,
                "algorithm.minibatch_size": size,
            },
        )
        single, own, alone = made(group, config)
        torch.manual_seed(5)
        batch = alone.collector.collect().clone()
        seeds = group.gather(own.generator.initial_seed())
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]

        def minibatches(samples, generators=generators, parts=parts):
            """The minibatches of both processes together."""
            half = len(samples) // 2
            orders = [torch.randperm(half, generator=each).tensor_split(parts) for each in generators]
            for one, other in zip(*orders, strict=True):
                yield samples[torch.cat((one, other + half))]

        single._minibatches = minibatches
        metrics = single.learn(batch)
        shared = own.learn(batch[halves(8, group.rank)])
        means = {key: float(group.mean(value)) for key, value in shared.items()}
        found[label] = compared(group, single, own) | {
            "updates": float(metrics["updates"]),
            "metrics": {key: [float(value), means[key]] for key, value in metrics.items()},
        }
    return found


def check_off_policy(group, name):
    """Twenty updates on the same minibatches, with the same noise."""
    algorithm = "sac" if name == "sac" else "dqn"
    settings = {"env.num_agents": [1, 4], "training.num_envs": 8, "training.rollout_length": 16}
    settings |= {"algorithm.minibatch_size": 32, "model.hidden": 16, **SMALL_MODEL, **OFF_POLICY[name]}
    config = load_config("swarm", algorithm=algorithm, keywords=settings)
    single, own, alone = made(group, config)
    torch.manual_seed(3)
    single.replay_buffer.extend(single._transitions.stored(alone.collector.collect()))
    call = [0, slice(None)]

    def with_noise(distribution, generator=None):
        """Sample with noise that depends on the number of the call and the row alone."""
        shape = (32, *distribution.loc.shape[1:])
        noise = torch.randn(shape, generator=torch.Generator().manual_seed(call[0]))[call[1]]
        call[0] += 1
        z = distribution.loc + distribution.log_scale.exp() * noise
        normal = -0.5 * noise.square() - distribution.log_scale - _HALF_LOG_TWO_PI
        return squash(z), (normal - log_slope(z)).sum(-1)

    found = {}
    for update in range(1, UPDATES + 1):
        samples = single.replay_buffer.sample()
        samples["weight"] = torch.rand(32, generator=torch.Generator().manual_seed(update))
        first = 1000 * update
        for each, rows in ((single, slice(None)), (own, halves(32, group.rank))):
            call[:] = [first, rows]
            prepared = each._prepare(each._transitions.expand(samples[rows].clone()))
            with patch.object(ArctanNormal, "rsample_and_log_prob", with_noise):
                each.update(prepared)
            each._update_targets()
        if update in (1, UPDATES):
            found["one" if update == 1 else "twenty"] = compared(group, single, own)
    return found


def check_reinforce(group, baseline):
    settings = {"training.num_envs": 8, "algorithm.starts": 2, "algorithm.baseline": baseline, **SMALL_MODEL}
    config = load_config("graphwalk", algorithm="reinforce", keywords=settings)
    single, own, alone = made(group, config)
    torch.manual_seed(3)
    batch = alone.collector.collect()
    mine = (batch["instance"] < 1) if group.rank == 0 else (batch["instance"] >= 1)
    single.learn(batch)
    own.learn(batch[mine].unsqueeze(0))
    return {"one": compared(group, single, own)}


def check_evolution(group):
    """Each process has played all candidates in half of the worlds."""
    settings = {"training.num_envs": 16, "algorithm.pairs": 2, **SMALL_MODEL}
    config = load_config("graphwalk", algorithm="evolution", keywords=settings)
    single, own, alone = made(group, config)
    batch = alone.collector.collect()
    mine = (batch["instance"] < 2) if group.rank == 0 else (batch["instance"] >= 2)
    single.learn(batch)
    half = batch[mine].unsqueeze(0)
    own.learn(half.set("instance", half["instance"] % 2))
    return {"one": compared(group, single, own)}


def check_clone(group):
    settings = {"env.num_agents": [1, 4], "algorithm.expert": "random", "algorithm.minibatch_size": 32}
    settings |= {"training.num_envs": 8, "training.rollout_length": 8}
    config = load_config("swarm", algorithm="clone", keywords={**settings, **SMALL_MODEL})
    single, own, alone = made(group, config)
    torch.manual_seed(3)
    samples = single.label(alone.collector.collect())
    match = [float(single.match(samples)), float(own.match(samples[halves(64, group.rank)]))]
    for _ in range(UPDATES):
        rows = torch.randint(64, (32,))
        single._update(samples[rows])
        own._update(samples[rows][halves(32, group.rank)])
    return {"twenty": compared(group, single, own), "match": match}


def check_expert_iteration(group):
    settings = {"env.size": 3, "training.num_envs": 8, "training.rollout_length": 16, **SMALL_MODEL}
    settings |= {"algorithm.minibatch_size": 32, "algorithm.simulations": 2, "algorithm.updates": 1}
    config = load_config("hex-expert", keywords=settings)
    single, own, alone = made(group, config)
    torch.manual_seed(3)
    single.learn(alone.collector.collect())
    own.load_state_dict({**own.state_dict(), **{key: single.state_dict()[key] for key in ("actor_critic",)}})
    own.load_state_dict({**own.state_dict(), "optimizer": single.state_dict()["optimizer"]})
    found = {}
    for update in range(1, UPDATES + 1):
        samples = single._sample()
        single._update(samples)
        own._update(samples[halves(32, group.rank)])
        if update in (1, UPDATES):
            found["one" if update == 1 else "twenty"] = compared(group, single, own)
    return found


class StopAfter(Callback):
    """Stops a run after some batches."""

    def __init__(self, batches):
        self.left = batches

    def on_batch(self, frames, metrics):
        self.left -= 1
        if self.left < 0:
            raise StopTraining("enough")


REINFORCE = {
    "algorithm.epochs": UNUSED,
    "algorithm.starts": 2,
    "algorithm.baseline": "greedy",
    "algorithm.challenge_every": 2,
    "algorithm.challenge_instances": 8,
    "algorithm.significance": 0.9,
}
OTHERS = ("marine-sac", "marine-ddpg", "marine-ac-iqn", "marine-iqn")


def settings_of(name):
    """The recipe or environment of a small run, its algorithm, and its settings."""
    settings = {**SMALL, "training.total_frames": 256, "logging.tensorboard": False, "seed": 1}
    if name == "evolution":
        unused = dict.fromkeys(("algorithm.epochs", "algorithm.minibatch_size"), UNUSED)
        longer = {"training.total_frames": 1024, "algorithm.pairs": 1}  # its batches are whole episodes
        return "graphwalk", "evolution", {**settings, **unused, **longer}
    if name == "reinforce":
        return "graphwalk", "reinforce", {**settings, **REINFORCE}
    if name == "recurrent":
        return "swarm-mappo", None, {**settings, "model.recurrent": True, "algorithm.target_kl": 1e-3}
    extra = {**RECIPES["marine-dqn"], "training.schedules": {}} if name in OTHERS else RECIPES[name]
    return name, None, {**settings, **extra}


def check_run(group, name):
    """A run that is stopped and continued against one that is left alone, file by file."""
    folder = Path(sys.argv[1])
    source, algorithm, settings = settings_of(name)
    chosen = {key: value for key, value in settings.items() if value != UNUSED}
    config = load_config(source, algorithm=algorithm, keywords={**chosen, "processes": group.size})
    whole = start(config, folder=folder / f"{name}-whole")
    stopped = start(config, folder=folder / f"{name}-stopped", callbacks=[StopAfter(3)])
    frames = json.loads((stopped / "events.jsonl").read_text().splitlines()[-1])["frames"]
    resume(stopped)
    wrong = differences(whole, stopped) if group.first else []
    share = frames / config.training.total_frames
    return {"stopped_at": share, "differences": group.broadcast(wrong)}


CHECKS = {
    "collectives": check_collectives,
    "statistics": check_statistics,
    "prioritised": check_prioritised,
    "clone": check_clone,
    "evolution": check_evolution,
    "expert_iteration": check_expert_iteration,
    **{f"ppo {name}": lambda group, name=name: check_ppo(group, name) for name in ON_POLICY},
    **{f"off_policy {name}": lambda group, name=name: check_off_policy(group, name) for name in OFF_POLICY},
    **{
        f"reinforce {name}": lambda group, name=name: check_reinforce(group, name)
        for name in ("mean", "shared")
    },
    **{
        f"run {name}": lambda group, name=name: check_run(group, name)
        for name in (*RECIPES, *OTHERS, "reinforce", "recurrent", "evolution")
    },
}


def main():
    torch.set_num_threads(1)
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    group = this_group()
    results = {}
    for name in names:
        try:
            results[name] = CHECKS[name](group)
        except (Exception, EdgewiseError):
            results[name] = {"error": traceback.format_exc()}
            break
    (folder / f"{group.rank}.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
