"""Flags over every recipe, made of the schema: bounds, the numbers beside them, and what makes no sense.

Each set is checked, and what it asks for is built and stepped in a child, with limits of time and memory.
"""

import os
import resource
import signal
import sys
import tempfile
import traceback
from typing import Literal, get_args, get_origin

from edgewise.config.errors import EdgewiseError
from edgewise.config.memory import is_out_of_memory
from edgewise.config.schema import leaves
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.experiments.memory_check import refuse_too_large
from edgewise.plugins import listed
from edgewise.scale.devices import refuse_out_of_memory

SECONDS = 60
"""Of processor time, after which a set of flags counts as hung."""
MEMORY = 12 << 30
ODD = (
    "0", "1", "-1", "2", "3", "0.5", "1e-320", "1e30", "1e308", "9223372036854775807", "9223372036854775808",
    "1000000000", "nan", "inf", "none", "true", "false", "x", "", "[]", "[2, 1]", "[1, 2]", "[0, 0]", "{}",
    "[1, 2, 3]", "1,2", "~", "é",
)  # fmt: skip
UNUSED = {"name", "device", "processes", "workers", "ray", "compile"}


def names():
    """Return the names of all recipes that need no file."""
    return sorted(name for name in listed("recipe") if name not in NEED_FILES)


NEED_FILES = {"reasoning-family", "reasoning-mined", "reasoning-umls", "reasoning-wn18rr"}


def choices(annotation):
    """Return the words that a setting accepts, as far as the schema lists them."""
    if get_origin(annotation) is Literal:
        return [str(each) for each in get_args(annotation)]
    return [word for part in get_args(annotation) for word in choices(part)]


def flag_set(dice):
    """Return the name of a recipe, and flags for it."""
    name = dice.choice(names())
    config = load_config(name)
    settings = [leaf for leaf in leaves(type(config), config) if UNUSED.isdisjoint(leaf.path)]
    flags = []
    for leaf in dice.sample(settings, dice.choice((1, 1, 2, 3))):
        words = choices(leaf.annotation)
        if words and dice.random() < 0.7:
            value = dice.choice(words)
        elif isinstance(leaf.default, bool):
            value = str(not leaf.default).lower()
        elif isinstance(leaf.default, int | float) and dice.random() < 0.7:
            scaled = leaf.default * dice.choice((2, 3, 0.5, 10, 100, -1))
            value = str(int(scaled) if isinstance(leaf.default, int) else scaled)
        elif dice.random() < 0.3:
            value = dice.choice(("1", "2", "3", "[1, 2]", "none", "0.5"))
        else:
            value = dice.choice(ODD)
        flags.append((leaf.flag, value))
    return name, flags


def build(name, flags):
    """Check flags as `edgewise train` does, build what they ask for with few worlds, and step it."""
    config = load_config(name, flags=flags)
    refuse_too_large(config)
    worlds, length = config.training.num_envs, config.training.rollout_length
    few = {"num_envs": min(2, worlds), "rollout_length": min(2, length)}
    with refuse_out_of_memory("this run", hint="less"):
        builder = Builder(config, episodes=2, **few)
        builder.algorithm  # noqa: B018 - builds it
        builder.env.rollout(2, auto_reset=True, break_when_any_done=False)


def flag_sets(place, dice):
    """One set of flags, in a child."""
    name, flags = flag_set(dice)
    signal.alarm(10 * SECONDS)  # by the clock; the child has a limit of processor time
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            _in_child(name, flags, said.fileno())
        try:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            status = -signal.SIGALRM
        said.seek(0)
        text = said.read().decode(errors="replace")
    shown = f"{name} {' '.join(f'{flag}={value}' for flag, value in flags)}"
    if status == 2:
        raise EdgewiseError(text)
    if status:
        raise RuntimeError(f"{shown}: ended with {status}: {text[-1200:]}")


def _in_child(name, flags, said):
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(0)
        build(name, flags)
        code = 0
    except EdgewiseError as error:
        os.write(said, str(error).encode(errors="replace") or b"an error without words")
        code = 2
    except BaseException as error:
        code = 2 if is_out_of_memory(error) else 1
        os.write(said, traceback.format_exc().encode(errors="replace"))
    finally:
        sys.stdout.flush()
        os._exit(code)
