"""`edgewise train`: train a recipe or a config file; write a run folder with a report."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from edgewise import plugins
from edgewise.cli.processes import as_process, start_processes, starts_processes
from edgewise.cli.studies import add_jobs, add_source, child_program, shown, train_words
from edgewise.config.run import AnyRun
from edgewise.experiments.load import load_config
from edgewise.plugins import Address
from edgewise.terminal.console import Console, table
from edgewise.terminal.fields import fields_help
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.takes_settings = True
    parser.details = _details
    parser.usage = (
        "edgewise train WHAT [--algorithm NAME] [--config FILE] [--out FOLDER] [--logger NAME] [--dry-run]\n"
        "                      [--seeds N [--jobs N]] [--SETTING VALUE ...]"
    )
    add_source(parser)
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help="run folder; a new one in runs/ if not given"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show the resolved config and sizes, without training"
    )
    parser.add_argument(
        "--seeds",
        type=whole_number(1),
        metavar="N",
        help="train with N seeds from --seed on, each in its own process, and write one report over them; "
        "the same command continues what was interrupted",
    )
    add_jobs(parser)
    parser.examples(
        "edgewise train graphwalk-ppo",
        "edgewise train graphwalk-ppo --seeds 5 --jobs 2",
        "edgewise train graphwalk-ppo --processes 2",
        "edgewise train graphwalk-ppo --seed 3 --training.total-frames 1e6 --env.num-nodes 6,20",
        "edgewise train graphwalk --algorithm ppo --num-nodes 20",
        "edgewise train tsp.py --total-frames 1e6",
        "edgewise train tsp.py --minutes 5",
        "edgewise train tsp.py --cpu-minutes 5 --algorithm sac",
        "edgewise train mine.yaml --dry-run --json",
        "edgewise train mine.json --device cuda",
    )


def run(options: Namespace, console: Console) -> int:
    """Train, or show the config with `--dry-run`."""
    config = load_config(
        options.source, algorithm=options.algorithm, file=options.config, flags=options.settings
    )
    if options.dry_run:
        prepare(threads=config.threads)
        return _dry_run(config, console)
    if options.seeds is not None:
        return _train_seeds(config, options, console)
    if starts_processes(config):
        out = [] if options.out is None else [f"--out={options.out}"]
        words = ["train", *train_words(options), *out]
        return start_processes(words, options, processes=config.processes)
    prepare(threads=config.threads)
    from edgewise.experiments.launch import start
    from edgewise.terminal.outcome import show_runs
    from edgewise.training.callbacks import make_loggers
    from edgewise.training.logging.progress import ShowProgress

    with as_process() as shows:
        callbacks = [ShowProgress(), *make_loggers(options.logger)] if shows else []
        finished = start(config, folder=options.out, callbacks=callbacks)
        if shows:
            show_runs([finished], console)
    return 0


def _train_seeds(config: AnyRun, options: Namespace, console: Console) -> int:
    """Train with several seeds in child processes, and show the result over them."""
    from edgewise.studies.seeds import plain, train_seeds

    result = train_seeds(
        config,
        train_words(options, without="seed"),
        seeds=options.seeds,
        jobs=options.jobs,
        out=options.out,
        program=child_program(options),
    )
    measures = list(dict.fromkeys(name for _, _, found in result.rows for name in found))
    rows = [
        [label, seeds or "", *(shown(found.get(name)) for name in measures)]
        for label, seeds, found in result.rows
    ]
    text = table(["policy", "seeds", *measures], rows)
    console.show(plain(result), f"{text}\n\nstudy:  {result.folder}\nreport: {result.report}")
    return 0


def _dry_run(config: AnyRun, console: Console) -> int:
    import yaml

    from edgewise.experiments.sizes import sizes

    plain = {"config": config.to_plain(), "sizes": sizes(config)}
    console.show(plain, yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).rstrip())
    return 0


def _details(arguments: Sequence[str]) -> str:
    """Return the help on every setting of the recipe in `arguments`."""
    words = [argument for argument in arguments if not argument.startswith("-")]
    named = [word for word in words if word in plugins.recipes() or word in plugins.environments()]
    named += [word for word in words if Address.parse(word) is not None]
    if not named:
        return (
            "\n\nEvery setting is a flag; `edgewise train WHAT --help` lists them for each of these."
            "\nThe last part of a name is enough if it is unique: --total-frames for --training.total-frames."
            f"\n\nrecipes: {', '.join(plugins.recipes())}"
            f"\n\nenvironments: {', '.join(plugins.environments())}"
            f"\n\nalgorithms: {', '.join(plugins.algorithms())}"
        )
    chosen = [after for before, after in pairwise(arguments) if before == "--algorithm"]
    source = next(word for word in named if word not in chosen)
    fields = fields_help(load_config(source, algorithm=chosen[0] if chosen else None))
    return f"\n\nsettings of {source} and their values:\n{fields}"
