"""The tasks, one file each. The docstring of a file is the card of its task."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from edgewise.benchmark.task import Task
from edgewise.config.errors import ConfigError
from edgewise.config.wording import did_you_mean
from edgewise.plugins import environments

FILES = (
    *("vertex_cover", "max_cut", "independent_set", "coloring", "tsp", "cvrptw", "job_shop"),
    *("queueing_one_hop", "queueing_reentrant", "many_agents", "immunisation"),
)


@cache
def tasks() -> dict[str, Task]:
    """Return all tasks by name; one whose environment was removed is left out."""
    known = environments()
    found = [import_module(f"{__name__}.{name}").TASK for name in FILES]
    return {task.name: task for task in found if task.environment in known}


def chosen_tasks(names: str | None) -> list[Task]:
    """Return the tasks of a comma-separated list; all if there is none.

    Raises:
        ConfigError: a name is not that of a task.
    """
    known = tasks()
    wanted = list(known) if names is None else list(dict.fromkeys(filter(None, names.split(","))))
    for name in wanted:
        if name not in known:
            raise ConfigError(f"--tasks: no task is called {name}", hint=did_you_mean(name, list(known)))
    if not wanted:
        raise ConfigError("--tasks: got no names", hint=f"there are {', '.join(known)}")
    return [known[name] for name in wanted]
