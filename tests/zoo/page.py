"""The table of docs/zoo.md, made from the cards: `python -m tests.zoo.page` writes it."""

import re
from pathlib import Path

from edgewise.runs.zoo import FOLDER, read_card, zoo_names

PAGE = Path(__file__).resolve().parents[2] / "docs" / "zoo.md"
TABLE = re.compile(r"(?<=\|---\|---\|---\|---\|---\|\n)((?:\|.*\n)*)")


def rows():
    """Return the rows of the table, one for each policy."""
    return [_row(read_card(FOLDER / name)) for name in zoo_names()]


def _row(card):
    own = [one for one in card.figures if one.policy == card.name]
    shown = [one for one in own if one.measure == card.measure][:1] or own[:2]
    first = shown[0]
    same = [one for one in card.figures if (one.measure, one.settings) == (first.measure, first.settings)]
    beside = [f"`{one.policy}` {one.mean:.4g}" for one in same if one.baseline]
    seeds = [f"{one.mean:.4g}" for one in same if not one.baseline and one.policy != card.name]
    if seeds:
        beside.append(f"other seeds {', '.join(seeds)}")
    figures = "; ".join(f"{one.measure} {one.text()}" for one in shown)
    size = sum(path.stat().st_size for path in (FOLDER / card.name).rglob("*") if path.is_file())
    return f"| `zoo:{card.name}` | {size // 1000} | {card.seed} | {figures} | {'; '.join(beside)} |"


def main():
    """Write the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub("".join(f"{row}\n" for row in rows()), text, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()
