"""`edgewise pack`: write the policy of a run as a small folder with a card, to hand on or to keep."""

from __future__ import annotations

import shlex
from argparse import Namespace
from pathlib import Path

from edgewise.cli.zoo import card_text
from edgewise.config.run import AnyRun
from edgewise.experiments.load import load_config
from edgewise.runs.zoo import PREFIX, is_in_zoo, run_path
from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number
from edgewise.terminal.sweep import combinations, given_settings


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.takes_settings = True
    parser.usage = "edgewise pack RUN [RUN ...] --out FOLDER [--baselines NAMES] [--SETTING A,B,C ...]"
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        type=run_path,
        help="run folder to pack; figures of further ones, with other seeds, are put on its card",
    )
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, required=True, help="folder, which must not exist"
    )
    parser.add_argument("--summary", metavar="TEXT", help="what the policy does (the summary of its recipe)")
    parser.add_argument(
        "--episodes",
        type=whole_number(1),
        metavar="N",
        help="instances of the figures; as in the run's own evaluation if not given",
    )
    parser.add_argument(
        "--baselines", default="", metavar="NAMES", help="also evaluate these, separated by commas, or all"
    )
    parser.add_argument(
        "--games",
        type=whole_number(2),
        default=400,
        metavar="N",
        help="games against each of --baselines, where two players play (400)",
    )
    parser.add_argument(
        "--ablate", default="", metavar="NAMES", help="what the policy is tried without: edges, x[2], memory"
    )
    parser.add_argument(
        "--checkpoint", choices=["best", "latest"], default="best", help="checkpoint to pack (best)"
    )
    parser.add_argument(
        "--commit", metavar="HASH", help="commit of edgewise that trained a run that does not say"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=A,B",
        help="evaluate at settings of the environment; every combination is evaluated",
    )
    parser.add_threads()
    parser.examples(
        "edgewise pack runs/graphwalk-ppo-1 --out walker --baselines all --ablate edges",
        "edgewise pack runs/graphwalk-ppo-1 runs/graphwalk-ppo-2 --out walker --num-nodes 20,40",
    )


def run(options: Namespace, console: Console) -> int:
    """Evaluate, pack, and show the card."""
    from edgewise.runs.folder import RunFolder

    config = load_config(RunFolder(options.runs[0]).config_file)
    chosen = combinations(config.env, given_settings(options.set, options.settings))
    prepare(threads=options.threads)
    from edgewise.experiments.pack import Measured, pack

    console.note("evaluating the policy, then packing it")
    measured = Measured(
        settings=chosen,
        episodes=options.episodes,
        baselines=_names(options.baselines),
        games=options.games,
        ablations=_names(options.ablate),
        command=_evaluation_command(options, is_game=_is_game(config)),
    )
    card = pack(
        options.runs,
        options.out,
        measured=measured,
        summary=options.summary or _summary(config.recipe, config.name),
        which=options.checkpoint,
        commit=options.commit,
    )
    size = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file())
    data = {"folder": str(options.out), "bytes": size, "card": card.to_plain()}
    console.show(data, f"{card_text(card)}\n\n{options.out}: {size / 1000:.0f} kB")
    return 0


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _summary(recipe: str | None, name: str) -> str:
    """Return the summary of a recipe, or the name of a run without one."""
    from edgewise import plugins
    from edgewise.experiments.recipes import recipe as find_recipe

    return find_recipe(recipe).summary if recipe and recipe in plugins.recipes() else name


def _is_game(config: AnyRun) -> bool:
    """Return whether two players play, so that matches are played instead of episodes."""
    from edgewise.plugins import environment

    env = environment(config.env_name).load("env")(config.env, num_envs=1, seed=0)
    return env.observation_spec.get("player", None) is not None


def _evaluation_command(options: Namespace, *, is_game: bool) -> str:
    """Return the command that prints the figures of the card from the packed run."""
    name = options.out.name
    run = f"{PREFIX}{name}" if is_in_zoo(options.out) else name
    opponents = ["--opponents", options.baselines] if options.baselines else []
    words = ["edgewise", "arena", run, "--games", str(options.games), *opponents]
    if not is_game:
        episodes = [] if options.episodes is None else ["--episodes", str(options.episodes)]
        baselines = ["--baselines", options.baselines] if options.baselines else []
        words = ["edgewise", "eval", run, *episodes, *baselines]
    for name, value in given_settings(options.set, options.settings):
        words += [name if name.startswith("--") else f"--env.{name.removeprefix('env.')}", value or "true"]
    return shlex.join(words)
