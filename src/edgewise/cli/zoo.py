"""`edgewise zoo`: list the policies that come with edgewise, or show the card of one."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence

from edgewise.runs.zoo import FOLDER, PREFIX, AblationFigure, Card, Figure, read_card, run_path, zoo_names
from edgewise.terminal.console import Console, table
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="policy whose card to show; a list if omitted"
    )
    parser.examples(
        "edgewise zoo", "edgewise zoo graphwalk-ppo", "edgewise eval zoo:graphwalk-ppo --num-nodes 8,20,40"
    )


def run(options: Namespace, console: Console) -> int:
    """List all policies, or show one card."""
    if options.name is None:
        cards = [read_card(FOLDER / name) for name in zoo_names()]
        console.show([_entry(card) for card in cards], _listing(cards))
        return 0
    card = read_card(run_path(f"{PREFIX}{options.name.removeprefix(PREFIX)}"))
    console.show({**card.to_plain(), "bytes": _bytes(card)}, card_text(card))
    return 0


def _entry(card: Card) -> dict[str, object]:
    main = _main_figure(card)
    return {
        "name": card.name,
        "environment": card.environment,
        "algorithm": card.algorithm,
        "summary": card.summary,
        "figure": None if main is None else main.to_plain(),
        "bytes": _bytes(card),
    }


def _listing(cards: Sequence[Card]) -> str:
    rows = []
    for card in cards:
        main = _main_figure(card)
        figure = "" if main is None else f"{main.measure} {main.text()}"
        rows.append([f"{PREFIX}{card.name}", _bytes(card) // 1000, figure, card.summary])
    size = sum(map(_bytes, cards)) / 1e6
    listed = table(["policy", "kB", "evaluation", "summary"], rows)
    return (
        f"{listed}\n\n{len(cards)} policies, {size:.1f} MB. eval, report, export, arena, play take zoo:NAME; "
        "`edgewise zoo NAME` shows the card"
    )


def card_text(card: Card) -> str:
    """Format a card: where the policy comes from, its figures and its ablations."""
    facts = {
        "environment": card.environment,
        "algorithm": card.algorithm,
        "trained by": f"{card.command}   ({card.frames:,} frames)",
        "commit": card.commit or "unknown",
        "evaluated by": card.evaluated,
    }
    width = max(map(len, facts))
    parts = [
        f"{card.name}: {card.summary}",
        "\n".join(f"{name.ljust(width)}  {value}" for name, value in facts.items()),
        _figures_text(card.figures),
    ]
    if card.ablations:
        header = ["settings", "without", "measure", "difference", "actions changed"]
        rows = [
            [
                _settings(one.settings),
                one.without,
                one.measure,
                f"{one.difference:.3g} {_bounds(one)}(n={one.episodes})",
                f"{one.changed_actions:.1%}",
            ]
            for one in card.ablations
        ]
        parts.append(table(header, rows))
    return "\n\n".join(parts)


def _figures_text(figures: Sequence[Figure]) -> str:
    """Format figures as a table: one row per policy and settings, one column per measure."""
    measures = list(dict.fromkeys(one.measure for one in figures))
    groups: dict[tuple[str, str, int], dict[str, str]] = {}
    for one in figures:
        groups.setdefault((_settings(one.settings), one.policy, one.episodes), {})[one.measure] = one.text()
    rows = [[*key, *(cells.get(measure, "") for measure in measures)] for key, cells in groups.items()]
    return table(["settings", "policy", "episodes", *measures], rows)


def _main_figure(card: Card) -> Figure | None:
    """Return the measure that decided the best checkpoint, of the policy itself."""
    own = [one for one in card.figures if one.policy == card.name]
    chosen = [one for one in own if one.measure == card.measure] or own
    return chosen[0] if chosen else None


def _bounds(one: AblationFigure) -> str:
    return "" if one.low is None or one.high is None else f"[{one.low:.3g}, {one.high:.3g}] "


def _settings(settings: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _bytes(card: Card) -> int:
    return sum(path.stat().st_size for path in (FOLDER / card.name).rglob("*") if path.is_file())
