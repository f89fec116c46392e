"""Where learning pays: each run beside the strongest rule, itself without edges, untrained, and the optimum.

Policies are compared on the same instances, or in games by matches from the same openings against the rule
that is hardest for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from edgewise.config.errors import ConfigError
from edgewise.envs.policy import Policy
from edgewise.evaluation.ablation import ablate
from edgewise.evaluation.arena.match import Match, play_match
from edgewise.evaluation.bounds import Values
from edgewise.evaluation.instances import Instances
from edgewise.evaluation.request import EvaluationRequest
from edgewise.evaluation.result import measure_interval
from edgewise.evaluation.statistics import Interval, paired_difference
from edgewise.experiments.build import Builder
from edgewise.experiments.contest import ReobservingPolicy, make_contest
from edgewise.experiments.evaluate import Trained, load_on_instances, load_trained, without_curriculum
from edgewise.experiments.load import load_config
from edgewise.plugins import Environment, environment
from edgewise.plugins.declarations import RANDOM
from edgewise.report.run_data import read_seconds
from edgewise.runs.folder import RunFolder

PAYS, EQUAL, LOSES, ALONE = "pays", "no difference", "does not pay", "no rule"
EDGES = "edges"


@dataclass(frozen=True)
class References:
    """The rules of an environment that count, by names of its baselines.

    Args:
        rules: the strongest for its action space.
        optimum: a baseline that is optimal or a bound, if one is.
    """

    rules: tuple[str, ...]
    optimum: str | None = None


@dataclass(frozen=True)
class Row:
    """One run beside what it has to be better than.

    Args:
        run: its name.
        environment: of the run.
        algorithm: of the run.
        settings: of the environment that differ from those of training.
        measure: what is compared.
        maximise: whether more of it is better.
        policy: of the trained policy.
        rule: name of the strongest rule.
        rule_value: of that rule.
        gain: policy minus rule, turned so that above zero is better; over pairs.
        without_edges: of the policy without edges; None if it uses none.
        edges_gain: policy minus itself without edges, turned so that above zero is better.
        untrained: of the policy before training.
        optimum: of a baseline that is optimal.
        minutes: that training took by the run's clock.
    """

    run: str
    environment: str
    algorithm: str
    settings: Mapping[str, Any]
    measure: str
    maximise: bool
    policy: Interval
    rule: str | None
    rule_value: Interval | None
    gain: Interval | None
    without_edges: Interval | None
    edges_gain: Interval | None
    untrained: Interval
    optimum: Interval | None
    minutes: float | None

    @property
    def verdict(self) -> str:
        """Whether the policy is better than the strongest rule, by the interval of the difference."""
        return ALONE if self.gain is None else _verdict(self.gain)

    @property
    def uses_edges(self) -> str:
        """Whether the policy is better with edges than without, by the interval of the difference."""
        return "" if self.edges_gain is None else _verdict(self.edges_gain)

    def to_plain(self) -> dict[str, Any]:
        """Return the row as plain values."""
        intervals = ("policy", "rule_value", "gain", "without_edges", "edges_gain", "untrained", "optimum")
        plain = {name: value for name, value in vars(self).items() if name not in intervals}
        found = {name: getattr(self, name) for name in intervals}
        values = {
            name: None if one is None else {"value": one.estimate, **one.ends()}
            for name, one in found.items()
        }
        return {**plain, "settings": dict(self.settings), **values, "verdict": self.verdict}


def compare_with_rules(run: Path, request: EvaluationRequest) -> Row:
    """Evaluate a run, the rules of its environment, itself without edges and untrained.

    Args:
        run: a run folder.
        request: settings, number of episodes (or games), seed and checkpoint.
    """
    config = load_config(RunFolder(run).config_file)
    entry = environment(config.env_name)
    seed = config.evaluation.seed if request.seed is None else request.seed
    request = replace(request, seed=seed, episodes=request.episodes or config.evaluation.episodes)
    trained = load_trained(run, which=request.checkpoint, device="cpu", config=config)
    is_game = trained.for_users().env.observation_spec.get("player", None) is not None
    found = _by_matches(run, entry, request) if is_game else _by_episodes(run, entry, request)
    return replace(found, run=run.resolve().name, minutes=_minutes(run))


def _by_episodes(run: Path, entry: Environment, request: EvaluationRequest) -> Row:
    trained, instances = load_on_instances(run, request)
    chosen = trained.config.evaluation
    sign = 1.0 if chosen.maximise else -1.0

    def values(policy: Policy) -> Values:
        measured = instances(policy).measures()
        if chosen.metric not in measured:
            raise ConfigError(f"{run}: evaluations have no measure {chosen.metric}")
        return measured[chosen.metric]

    references = references_of(entry, instances)
    names = tuple(dict.fromkeys((*references.rules, *filter(None, (references.optimum,)))))
    rules = {name: values(policy) for name, policy in instances.baselines(names).items()}
    strongest = max(references.rules, key=lambda name: sign * float(np.nanmean(rules[name])), default=None)
    own, cut = values(trained.policy), _cut(trained.policy, instances.env)
    ablated = None if cut is None else values(cut)

    def interval(found: Values | None) -> Interval | None:
        return None if found is None else measure_interval(chosen.metric, found[~np.isnan(found)])

    whole, untrained = interval(own), interval(values(_untrained(trained)))
    assert whole is not None
    assert untrained is not None
    return Row(
        run=run.name,
        environment=trained.config.env_name,
        algorithm=trained.config.algorithm_name,
        settings=instances.settings,
        measure=chosen.metric,
        maximise=chosen.maximise,
        policy=whole,
        rule=strongest,
        rule_value=None if strongest is None else interval(rules[strongest]),
        gain=None if strongest is None else _gain(own, rules[strongest], sign),
        without_edges=interval(ablated),
        edges_gain=None if ablated is None else _gain(own, ablated, sign),
        untrained=untrained,
        optimum=None if references.optimum is None else interval(rules[references.optimum]),
        minutes=None,
    )


def _by_matches(run: Path, entry: Environment, request: EvaluationRequest) -> Row:
    config = load_config(RunFolder(run).config_file)
    settings = {**config.evaluation.settings, **request.settings}
    games = (request.episodes or config.evaluation.episodes) // 2 * 2
    trained = load_trained(run, settings=settings, which=request.checkpoint, device="cpu", config=config)
    references = references_of(entry, None)
    contest = make_contest(
        [run], games=games, opponents=references.rules, settings=settings, which=request.checkpoint
    )
    whole = contest.players[next(iter(contest.checkpoints))]
    assert isinstance(whole, ReobservingPolicy)
    seed = request.seed or 0

    def match(policy: Policy, rule: str) -> Match:
        return play_match(contest.env, policy, contest.players[rule], seed=seed)

    played = {rule: match(whole, rule) for rule in references.rules}
    hardest = min(played, key=lambda rule: played[rule].score)
    cut = _cut(whole.policy, whole.env)
    ablated = None if cut is None else match(ReobservingPolicy(whole.env, cut), hardest)
    untrained = match(ReobservingPolicy(whole.env, _untrained(trained)), hardest)
    own = played[hardest]
    score = own.interval()
    even = Interval(0.5, np.nan, np.nan, score.samples)
    gain = Interval(score.estimate - 0.5, score.low - 0.5, score.high - 0.5, score.samples)
    return Row(
        run=run.name,
        environment=config.env_name,
        algorithm=config.algorithm_name,
        settings=settings,
        measure="score against the rule",
        maximise=True,
        policy=score,
        rule=hardest,
        rule_value=even,
        gain=gain,
        without_edges=None if ablated is None else ablated.interval(),
        edges_gain=None if ablated is None else paired_difference(own.scores, ablated.scores),
        untrained=untrained.interval(),
        optimum=None,
        minutes=None,
    )


def references_of(entry: Environment, instances: Instances | None) -> References:
    """Return the rules of an environment that count: as it declares, or all of its baselines but `random`."""
    declared = entry.load("references")
    if declared is not None:
        found: References = declared(None if instances is None else instances.env)
        return found
    return References(tuple(name for name in entry.load_baselines() if name != RANDOM))


def _cut(policy: Policy, env: Any) -> Policy | None:
    """Return a policy without edges; None if it has no graph encoder."""
    try:
        return ablate(policy, EDGES, env)
    except ConfigError:
        return None


def _untrained(trained: Trained) -> Policy:
    """Return the policy with the initial weights of the run's seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(trained.config.seed)
        return Builder(without_curriculum(trained.config), num_envs=1).algorithm.policy


def _gain(own: Values, other: Values, sign: float) -> Interval:
    """Compute the mean of own minus other over pairs, turned so that above zero is better."""
    both = ~(np.isnan(own) | np.isnan(other))
    found = paired_difference(own[both], other[both])
    if sign > 0:
        return found
    return Interval(0.0 - found.estimate, 0.0 - found.high, 0.0 - found.low, found.samples, found.level)


def _verdict(gain: Interval) -> str:
    if gain.has_bounds and gain.low > 0:
        return PAYS
    return LOSES if gain.has_bounds and gain.high < 0 else EQUAL


def _minutes(run: Path) -> float | None:
    path = run / "timing.csv"
    seconds = read_seconds(path) if path.is_file() else None
    return None if seconds is None else seconds / 60


def sorted_rows(rows: Sequence[Row]) -> list[Row]:
    """Return rows by environment, those that do not pay first within each."""
    order = {LOSES: 0, EQUAL: 1, ALONE: 2, PAYS: 3}
    return sorted(rows, key=lambda row: (row.environment, order[row.verdict], row.run))
