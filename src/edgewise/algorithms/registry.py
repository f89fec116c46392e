"""The algorithms that ship with edgewise, by name. Never imports torch."""

from __future__ import annotations

from typing import Any

from edgewise.plugins.declarations import AlgorithmEntry

_HOME = "edgewise.algorithms"
_VALUES = "edgewise.models.config:ValueConfig"

ALGORITHMS = {
    "ppo": AlgorithmEntry(
        algorithm=f"{_HOME}.ppo:PPO",
        config=f"{_HOME}.config:PPOConfig",
        self_play_config=f"{_HOME}.config:SelfPlayConfig",
        summary="proximal policy optimisation; with several agents, MAPPO; in games, by self-play",
    ),
    "clone": AlgorithmEntry(
        algorithm=f"{_HOME}.clone:Clone",
        config=f"{_HOME}.config:CloneConfig",
        summary="behaviour cloning of a baseline, or DAgger",
    ),
    "expert_iteration": AlgorithmEntry(
        algorithm=f"{_HOME}.expert_iteration:ExpertIteration",
        config=f"{_HOME}.expert_iteration_config:ExpertIterationConfig",
        self_play_config=f"{_HOME}.expert_iteration_config:ExpertIterationConfig",
        summary="expert iteration (AlphaZero-style) with Gumbel root selection",
    ),
    "apg": AlgorithmEntry(
        algorithm=f"{_HOME}.apg:APG",
        config=f"{_HOME}.config:APGConfig",
        summary="analytic policy gradients, through environments that are differentiable",
    ),
    "reinforce": AlgorithmEntry(
        algorithm=f"{_HOME}.reinforce:REINFORCE",
        config=f"{_HOME}.config:ReinforceConfig",
        summary="REINFORCE on whole episodes: shared (POMO), greedy, mean or no baseline",
    ),
    "evolution": AlgorithmEntry(
        algorithm=f"{_HOME}.evolution:Evolution",
        config=f"{_HOME}.config:EvolutionConfig",
        summary="evolution strategies: antithetic, ranked, with common random numbers",
    ),
    "dqn": AlgorithmEntry(
        algorithm=f"{_HOME}.dqn:DQN",
        config=f"{_HOME}.off_policy_config:DQNConfig",
        self_play_config=f"{_HOME}.off_policy_config:DQNSelfPlayConfig",
        model=_VALUES,
        summary="deep Q-network: double, dueling, noisy, n-step, team mixers; in games, by self-play",
    ),
    "rainbow": AlgorithmEntry(
        algorithm=f"{_HOME}.rainbow:Rainbow",
        config=f"{_HOME}.off_policy_config:RainbowConfig",
        self_play_config=f"{_HOME}.off_policy_config:RainbowSelfPlayConfig",
        model=_VALUES,
        summary="Rainbow: categorical returns, noisy layers, prioritised replay",
    ),
    "iqn": AlgorithmEntry(
        algorithm=f"{_HOME}.iqn:IQN",
        config=f"{_HOME}.off_policy_config:IQNConfig",
        self_play_config=f"{_HOME}.off_policy_config:IQNSelfPlayConfig",
        model=_VALUES,
        summary="implicit quantile network",
    ),
    "ac-iqn": AlgorithmEntry(
        algorithm=f"{_HOME}.ac_iqn:ACIQN",
        config=f"{_HOME}.off_policy_config:ACIQNConfig",
        model=_VALUES,
        summary="deterministic actor with a critic of implicit quantiles",
    ),
    "sac": AlgorithmEntry(
        algorithm=f"{_HOME}.sac:SAC",
        config=f"{_HOME}.off_policy_config:SACConfig",
        self_play_config=f"{_HOME}.off_policy_config:SACSelfPlayConfig",
        model=_VALUES,
        summary="soft actor-critic, for continuous and for discrete actions",
    ),
    "ddpg": AlgorithmEntry(
        algorithm=f"{_HOME}.ddpg:DDPG",
        config=f"{_HOME}.off_policy_config:DDPGConfig",
        model=_VALUES,
        summary="deep deterministic policy gradient",
    ),
}
"""Name to declaration."""


def algorithm_class(name: str) -> Any:
    """Return the class of an algorithm that ships with edgewise."""
    return _entry(name).load("algorithm")


def algorithm_config(name: str) -> Any:
    """Return the config class of an algorithm that ships with edgewise, without importing torch."""
    return _entry(name).load("config")


def _entry(name: str) -> AlgorithmEntry:
    if name not in ALGORITHMS:
        raise ValueError(f"no algorithm is called {name!r}; there are {', '.join(sorted(ALGORITHMS))}")
    return ALGORITHMS[name]
