"""Small runs with workers, and workers in this process that answer late, in any order and more than once."""

import random

import torch

from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.runs.checkpoint import random_state, serialise
from edgewise.scale.workers.local import LocalWorkers
from edgewise.scale.workers.message import copied, unpack
from edgewise.scale.workers.sharding import with_workers
from edgewise.scale.workers.worker import Blueprint

SMALL = {
    "training.num_envs": 6,
    "training.rollout_length": 4,
    "algorithm.epochs": 2,
    "algorithm.minibatch_size": 16,
    "model.encoder.hidden": 8,
    "model.encoder.heads": 2,
    "model.encoder.layers": 1,
    "evaluation.episodes": 4,
    "logging.tensorboard": False,
    "workers": 2,
}
OFF_POLICY = {
    "training.num_envs": 4,
    "training.rollout_length": 4,
    "algorithm.minibatch_size": 8,
    "algorithm.learning_starts": 0,
    "algorithm.replay_size": 256,
    "evaluation.episodes": 2,
    "evaluation.stages": [],
    "workers": 2,
}


def config_of(source="graphwalk-ppo", **settings):
    chosen = {name.replace("__", "."): value for name, value in settings.items()}
    base = SMALL if source == "graphwalk-ppo" else OFF_POLICY
    return load_config(source, keywords={**base, **chosen})


class Shuffled(LocalWorkers):
    """Does calls in an order of its own, some twice, as if the first worker had died with its reply."""

    def __init__(self, blueprint, seed):
        super().__init__(blueprint)
        self.dice, self.waiting, self.orders, self.repeats = random.Random(seed), [], [], 0

    def submit(self, verb, order, call, *, first=False):
        self._submitted += 1
        self.waiting.append((self._submitted, verb, copied(order), copied(call)))
        self.orders.append((verb, order, unpack(copied(call))))
        return self._submitted

    def wait(self, numbers):
        while not (done := [number for number in numbers if number in self._replies]):
            number, verb, order, call = self.waiting.pop(self.dice.randrange(len(self.waiting)))
            with random_state.untouched():
                reply = copied(self._worker.answer(verb, order, call))
                if self.dice.random() < 0.3:
                    self.repeats += 1
                    torch.rand(self.dice.randrange(1, 50))
                    reply = copied(self._worker.answer(verb, order, call))
            self._replies[number] = reply
        return self.dice.choice(done)


def parts_of(config, workers=None):
    """The parts of a run, with workers in this process, and its global generators seeded."""
    parts = Builder(config).parts()
    blueprint = Blueprint.of(config, num_envs=config.training.num_envs // config.workers)
    random_state.seed(config.seed)
    return with_workers(parts, config, workers=workers or LocalWorkers(blueprint))


def shuffled(config, seed):
    return Shuffled(Blueprint.of(config, num_envs=config.training.num_envs // config.workers), seed)


def trained(parts, batches):
    """Collect and learn; returns the batches, and the last metrics of learning."""
    found, metrics = [], {}
    for _ in range(batches):
        batch = parts.rollout.collect()
        found.append(batch.clone())
        metrics = parts.algorithm.learn(batch)
    return found, metrics


def equal(one, other):
    """Whether two states are equal to the last bit."""
    left, right = (serialise.flatten(each) for each in (one, other))
    names = left[1].keys() == right[1].keys()
    return left[0] == right[0] and names and all(same(left[1][name], right[1][name]) for name in left[1])


def same(one, other):
    if one.is_floating_point():
        return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())
    return torch.equal(one, other)


def same_batches(ones, others):
    return len(ones) == len(others) and all(
        equal(one.to_dict(), other.to_dict()) for one, other in zip(ones, others, strict=True)
    )
