"""Compile the message passing of a run's models, where the config asks for it."""

from __future__ import annotations

from torch import nn

from edgewise.algorithms.algorithm import Algorithm
from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.off_policy_config import OffPolicyConfig
from edgewise.config.errors import ConfigError
from edgewise.config.run import AnyRun
from edgewise.models.compile import compile_module
from edgewise.models.encoders.encoder import Trunk

EARNED_BACK = 4e9
"""Work from which compiling should earn back twice its own time, in channels of nodes and layers that are
learned from. An estimate from two trials; benchmarks/compiled.py measures single recipes."""


def compile_models(algorithm: Algorithm, config: AnyRun, *, num_nodes: int) -> None:
    """Compile the message passing of an algorithm's models if `training.compile` says so.

    Only the trunks of encoders are compiled: their inputs are compacted edges, of sizes that are marked as
    dynamic. Losses, heads and networks on flat observations run as they are, since compiled they are slower
    on a CPU.

    Args:
        algorithm: with its models as attributes.
        config: of the run.
        num_nodes: node slots of a graph.

    Raises:
        ConfigError: the models have no message passing.
    """
    wish = config.training.compile
    if wish is False:
        return
    trunks = trunks_of(algorithm)
    if wish == "auto":
        wish = learned_channels(config, trunks, num_nodes=num_nodes) >= EARNED_BACK
    elif not trunks:
        raise ConfigError(
            "training.compile: the model passes no messages, and compiled networks of other kinds are slower",
            hint="leave it out, or choose an encoder that passes messages",
        )
    for trunk in trunks:
        compile_module(trunk, enabled=wish)


def trunks_of(algorithm: Algorithm) -> list[Trunk]:
    """Return the message-passing parts of all models that are attributes of an algorithm."""
    models = [each for each in vars(algorithm).values() if isinstance(each, nn.Module)]
    found = [part for model in models for part in model.modules() if isinstance(part, Trunk)]
    return list(dict.fromkeys(found))


def learned_channels(config: AnyRun, trunks: list[Trunk], *, num_nodes: int) -> float:
    """Return the work of learning in a whole run: graphs, as often as they are learned from, times channels.

    It follows from the config alone, so that a run compiles on every machine, or on none. It is zero for
    algorithms whose work is not known from their config.
    """
    algorithm, graphs = config.algorithm, float(config.training.total_frames)
    if isinstance(algorithm, PPOConfig):
        graphs *= algorithm.epochs
    elif isinstance(algorithm, OffPolicyConfig):
        graphs *= algorithm.updates_per_transition * algorithm.minibatch_size
    else:
        return 0.0
    return graphs * num_nodes * sum(len(trunk.blocks) * trunk.embed.mix.in_features for trunk in trunks)
