"""Exact long-run backlog on one small conflict graph: the optimum and the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.policy import Policy
from edgewise.systems.queueing.baselines import BASELINES
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.queueing.env import QueueingEnv
from edgewise.systems.queueing.graphs import conflict_graph
from edgewise.systems.queueing.oracle.value_iteration import mean_backlog, optimal_schedule
from edgewise.systems.queueing.sets.heaviest import carried_share

MAX_STATES, MAX_CAP = 250_000, 40
"""Limits of the default cap: joint states of all queues, and packets in one queue."""

RANDOMISED = ("random-maximal", "random-greedy")


@dataclass(frozen=True)
class ExactFigure:
    """The exact long-run backlog of a policy.

    Attributes:
        policy: `optimal`, or the name of a baseline.
        graph: name of the conflict graph.
        rate: Bernoulli arrival rate of each node.
        cap: maximum length of a queue in the calculation; further arrivals are lost.
        backlog: mean number of waiting packets.
        truncation_bias: estimated effect of the cap, by comparison with a cap of three quarters.
        full: probability that some queue is full under the optimum; None for a baseline.
        sweeps: sweeps of value iteration for the optimum; None for a baseline.
    """

    policy: str
    graph: str
    rate: tuple[float, ...]
    cap: int
    backlog: float
    truncation_bias: float
    full: float | None = None
    sweeps: int | None = None


def exact_figures(
    graph: str,
    rate: Sequence[float],
    *,
    policies: Sequence[str] = (),
    cap: int | None = None,
    arrivals_servable: bool = False,
) -> list[ExactFigure]:
    """Compute the optimum for unit service and Bernoulli arrivals, then the exact backlog of baselines.

    Args:
        graph: name of the conflict graph.
        rate: one rate for all nodes, or one for each node.
        policies: names of deterministic baselines.
        cap: maximum length of a queue; by default as `MAX_STATES` allows.
        arrivals_servable: whether a packet may leave in the slot of its arrival.

    Raises:
        ConfigError: the rates do not fit the graph or exceed its capacity, or a policy is unknown.

    Example:
        >>> [round(figure.backlog, 3) for figure in exact_figures("clique2", [0.4], policies=["maxweight"])]
        [1.6, 1.6]
    """
    _check_policies(policies)
    config = _config(graph, arrivals_servable)
    rates, cap = _checked(graph, rate, cap)
    best = optimal_schedule(conflict_graph(graph), rates, cap=cap, arrivals_servable=arrivals_servable)
    optimum = ExactFigure(
        policy="optimal",
        graph=graph,
        rate=rates,
        cap=cap,
        backlog=best.backlog,
        truncation_bias=best.truncation_bias,
        full=best.full,
        sweeps=best.sweeps,
    )
    env = QueueingEnv(config, num_envs=1, seed=0)
    return [
        optimum,
        *(
            _baseline_figure(name, _BaselineSchedule(BASELINES[name](env), config), optimum)
            for name in policies
        ),
    ]


def _baseline_figure(name: str, rule: _BaselineSchedule, optimum: ExactFigure) -> ExactFigure:
    """Compute the figure of a baseline at the optimum's rates and cap."""
    order = rule.config.arrivals_servable
    fine, coarse = (
        mean_backlog(rule, optimum.rate, cap=room, arrivals_servable=order)
        for room in (optimum.cap, 3 * optimum.cap // 4)
    )
    bias = abs(fine - coarse)
    return replace(optimum, policy=name, backlog=fine, truncation_bias=bias, full=None, sweeps=None)


def _config(graph: str, arrivals_servable: bool) -> QueueingConfig:
    try:
        return QueueingConfig(graphs=(graph,), arrivals_servable=arrivals_servable)
    except ValueError as error:
        hint = "such as line3, ring5, star4 or 4:0-1,1-2"
        raise ConfigError(f"--graph: {graph!r} is not a graph name", hint=hint) from error


def _check_policies(names: Sequence[str]) -> None:
    solvable = [name for name in BASELINES if name not in RANDOMISED]
    unknown = sorted(set(names) - set(solvable))
    if unknown:
        raise ConfigError(
            f"--policy: {', '.join(unknown)} cannot be solved exactly", hint=f"use {', '.join(solvable)}"
        )


def _checked(graph: str, rate: Sequence[float], cap: int | None) -> tuple[tuple[float, ...], int]:
    """Check the rates and choose a cap: one rate for each node, and the cap."""
    nodes = conflict_graph(graph)
    rates = tuple(rate) * nodes.num_nodes if len(rate) == 1 else tuple(rate)
    if len(rates) != nodes.num_nodes:
        raise ConfigError(f"--rate: {len(rates)} rates for {graph}, which has {nodes.num_nodes} nodes")
    if not all(0.0 <= each < 1.0 for each in rates):
        raise ConfigError(f"--rate: got {', '.join(map(str, rates))}, expected numbers from 0 to below 1")
    share = carried_share(nodes, rates)
    if share <= 1.0:
        same = len(set(rates)) == 1
        limit = f"{share * rates[0]:.4g} at every node" if same else f"{share:.4g} times these rates"
        got = rates[0] if same else ", ".join(map(str, rates))
        raise ConfigError(f"--rate: {graph} carries less than {limit}, got {got}")
    room = min(MAX_CAP, int(MAX_STATES ** (1.0 / nodes.num_nodes)) - 1) if cap is None else cap
    if cap is None and room < 4:
        raise ConfigError(
            f"--graph: even 4 packets in each of {nodes.num_nodes} queues are too many states to solve",
            hint="use a graph of at most seven nodes, or measure with `edgewise baseline queueing`",
        )
    if room < 4 or (room + 1) ** nodes.num_nodes > 20 * MAX_STATES:
        raise ConfigError(
            f"--cap: {room} packets in {nodes.num_nodes} queues are {(room + 1) ** nodes.num_nodes:,} states",
            hint=f"use a smaller graph, or a cap of at least 4 with at most {20 * MAX_STATES:,} states",
        )
    return rates, room


class _BaselineSchedule:
    """A baseline as a schedule: a function of the queues, with all channels 1.

    Args:
        policy: the baseline.
        config: settings of an environment with one graph.
    """

    def __init__(self, policy: Policy, config: QueueingConfig) -> None:
        self.policy, self.config = policy, config

    def __call__(self, queues: Tensor) -> Tensor:
        """Return the active nodes `[X, N]` for queues `[X, N]`."""
        count = len(queues)
        number, ones = torch.zeros(count, dtype=torch.int64), torch.ones_like(queues)
        state = TensorDict({"queues": queues, "service": ones, "conflict_graph": number}, [count])
        waiting = ones.bool() if self.config.arrivals_servable else queues > 0
        return self.policy(TensorDict({"state": state, "action_mask": waiting}, [count]))["action"]
