"""Apply schedules to the numbers of an algorithm; a schedule is a pure function of the frames so far."""

from __future__ import annotations

from collections.abc import Mapping

from edgewise.config.errors import ConfigError
from edgewise.config.schedules import Schedule


def apply_schedules(
    algorithm: object, schedules: Mapping[str, Schedule], *, frames: int, total_frames: int
) -> dict[str, float]:
    """Set each scheduled number to its value at `frames`, and return the values by name.

    Args:
        algorithm: must have `set_scalar(name, value)` if anything is scheduled.
        schedules: by the name of the number.
        frames: frames so far.
        total_frames: frames of the whole run.
    """
    values = {name: schedule.at(frames, total_frames) for name, schedule in schedules.items()}
    if not values:
        return {}
    set_scalar = getattr(algorithm, "set_scalar", None)
    if set_scalar is None:
        raise ConfigError(
            f"training.schedules: {type(algorithm).__name__} has no numbers that can be scheduled",
            hint=f"remove the schedules of {', '.join(values)}",
        )
    for name, value in values.items():
        try:
            set_scalar(name, value)
        except ValueError as error:
            raise ConfigError(f"training.schedules.{name}: {error}") from error
    return values
