"""Decisions of a sweep by Optuna: what to try next, what to stop early, and which settings mattered.

Each decision is a function of the trials so far. Nothing else is kept, so a sweep that was killed decides as
if it had not been. Akiba et al., "Optuna" (https://arxiv.org/abs/1907.10902).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from edgewise.config.errors import ConfigError
from edgewise.studies.space import Choice, Dimension, Space, Value
from edgewise.studies.trials import Trial

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

STARTUP_TRIALS = 5
"""Trials that must be complete before one is stopped early."""
WARMUP_EVALUATIONS = 1
"""Evaluations of a trial, that of the untrained policy included, before it may be stopped early."""


def check_optuna() -> None:
    """Raise ConfigError if Optuna is not installed."""
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "a sweep needs Optuna, which is not installed", hint="pip install 'edgewise[sweep]'"
        ) from error


def propose(space: Space, trials: Sequence[Trial], *, maximise: bool, seed: int) -> dict[str, Value]:
    """Propose the values of the next trial by a tree-structured Parzen estimator; the first ten are random.

    Args:
        space: of the sweep.
        trials: so far, those that are running included.
        maximise: whether higher values are better.
        seed: of the sweep; with the number of trials it determines the random numbers.
    """
    from optuna.samplers import TPESampler

    own = int(np.random.SeedSequence([seed, len(trials)]).generate_state(1)[0])
    sampler = TPESampler(seed=own, multivariate=True, constant_liar=True)
    study = _study(space, trials, maximise=maximise, sampler=sampler)
    return dict(study.ask(_distributions(space)).params)


def should_prune(space: Space, trials: Sequence[Trial], number: int, *, maximise: bool) -> bool:
    """Return whether the best evaluation of a running trial is below the median of complete ones so far."""
    from optuna.pruners import MedianPruner

    pruner = MedianPruner(n_startup_trials=STARTUP_TRIALS, n_warmup_steps=WARMUP_EVALUATIONS)
    study = _study(space, trials, maximise=maximise)
    return bool(pruner.prune(study, study.trials[number]))


def importances(space: Space, trials: Sequence[Trial], *, maximise: bool) -> dict[str, float]:
    """Return the share of each setting in the difference between good and other trials; they sum to 1.

    PED-ANOVA (https://arxiv.org/abs/2304.10255). Empty with fewer than four complete trials, or where all
    have the same value.
    """
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    complete = [trial for trial in trials if trial.state == "complete"]
    if len(complete) < 4 or len({trial.value for trial in complete}) < 2:
        return {}
    study = _study(space, complete, maximise=maximise)
    found = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
    return {name: float(share) for name, share in found.items()}


def best_trial(trials: Sequence[Trial], *, maximise: bool) -> Trial | None:
    """Return the complete trial with the best value; the first of equals."""
    sign = 1.0 if maximise else -1.0
    complete = [
        (sign * trial.value, trial)
        for trial in trials
        if trial.state == "complete" and trial.value is not None
    ]
    return max(complete, key=lambda pair: pair[0])[1] if complete else None


def _study(space: Space, trials: Sequence[Trial], *, maximise: bool, sampler: object = None) -> Study:
    """Build Optuna's view of the trials, in memory."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize" if maximise else "minimize", sampler=sampler)  # type: ignore[arg-type]
    distributions = _distributions(space)
    study.add_trials([_frozen(trial, distributions) for trial in trials])
    return study


def _frozen(trial: Trial, distributions: dict[str, BaseDistribution]) -> FrozenTrial:
    from optuna.trial import TrialState, create_trial

    states = {
        "running": TrialState.RUNNING,
        "complete": TrialState.COMPLETE,
        "pruned": TrialState.PRUNED,
        "failed": TrialState.FAIL,
    }
    has_value = trial.state in ("complete", "pruned")
    return create_trial(
        state=states[trial.state],
        value=trial.value if has_value else None,
        params=dict(trial.params),
        distributions=distributions,
        intermediate_values=dict(trial.evaluations),
    )


def _distributions(space: Space) -> dict[str, BaseDistribution]:
    return {name: _distribution(dimension) for name, dimension in space.items()}


def _distribution(dimension: Dimension) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(dimension, Choice):
        return CategoricalDistribution(dimension.options)
    if dimension.is_whole:
        return IntDistribution(int(dimension.low), int(dimension.high), log=dimension.is_log)
    return FloatDistribution(dimension.low, dimension.high, log=dimension.is_log)
