"""Measure the figures of cards again: `python -m tests.zoo.remeasure [NAME ...]`.

Runs the command of each card, with all rules that count, and replaces the figures of the policy and of the
rules. Runs of other seeds are not in the package: their means stay, and intervals that cannot be right (of
shares, or without a width) are computed from them again or left out.
"""

import contextlib
import io
import json
import shlex
import sys

from edgewise.cli.main import main as edgewise
from edgewise.evaluation.statistics import mean_interval
from edgewise.runs import digests
from edgewise.runs.zoo import CARD, FOLDER, AblationFigure, Figure, read_card, zoo_names

RULES = {
    "queueing": "maxweight,degree-maxweight,power-maxweight,max-departures,local-greedy",
    "multihop": "backpressure,spbp,length-backpressure,flow-backpressure,bpi,spts",
    "hex-selfplay": "random,shortest_way,most_current,least_resistance",
    "hex-quick": "random,shortest_way,most_current,least_resistance,mcts",
    "hex-expert": "random,shortest_way,most_current,least_resistance",
}
ABLATED = {"hex-selfplay": ("edges", [{"size": 7}, {"size": 11}])}
"""Ablations by matches: what, and settings."""


def command_of(card):
    """Return the words of a card's command, for the policy of the package and with all rules that count."""
    words = shlex.split(card.evaluated)
    words[2] = f"zoo:{card.name}"
    rules = RULES.get(card.name, RULES.get(card.environment))
    flag = "--opponents" if words[1] == "arena" else "--baselines"
    if rules and flag in words:
        words[words.index(flag) + 1] = rules
    return words


def printed(words):
    """Run a command of edgewise and return what it prints with --json."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert edgewise([*words[1:], "--json"]) == 0
    return json.loads(out.getvalue())


def remeasured(name):
    """Return the card of a policy with new figures."""
    card = read_card(FOLDER / name)
    words = command_of(card)
    found = printed(words)
    figures = list(_of_matches(card, found) if "scores" in found else _of_episodes(card, found))
    ablations = [_sound_ablation(one) for one in card.ablations]
    if name in ABLATED:
        ablations = list(_ablated(name, *ABLATED[name]))
    return card.model_copy(
        update={"figures": tuple(figures), "ablations": tuple(ablations), "evaluated": shlex.join(words)}
    )


def _of_episodes(card, found):
    for result in found["results"]:
        for measure, value in result["measures"].items():
            yield Figure(
                policy=result["policy"] if result["baseline"] else card.name,
                baseline=result["baseline"],
                settings=result["settings"],
                episodes=result["episodes"],
                measure=measure,
                **value,
            )
    yield from (_sound(one) for one in card.figures if not one.baseline and one.policy != card.name)


def _of_matches(card, found):
    place = found["players"].index(card.name)
    for opponent, score, ends in zip(
        found["players"], found["scores"][place], found["intervals"][place], strict=True
    ):
        if score is not None:
            low, high = ends or (None, None)
            yield Figure(
                policy=card.name,
                settings=found["settings"],
                episodes=found["games"],
                measure=f"score against {opponent}",
                mean=score,
                low=low,
                high=high,
                n=found["games"] // 2,
            )
    exact = [one for one in card.figures if one.policy == card.name and "exploitability" in one.measure]
    others = [one for one in card.figures if one.policy != card.name]
    yield from (_sound(one) for one in (*exact, *others))


def _sound(one):
    """Return a figure of which only the mean is known, with an interval that can be right."""
    if "exploitability" in one.measure:
        return one.model_copy(update={"low": None, "high": None})
    if one.low is not None and one.low < one.high:
        return one
    hits = round(one.mean * one.episodes)
    if 0 <= one.mean <= 1 and abs(hits - one.mean * one.episodes) < 1e-6:
        share = mean_interval([1.0] * hits + [0.0] * (one.episodes - hits), share=True)
        if one.measure not in ("return", "length"):
            return one.model_copy(update=share.ends())
    return one.model_copy(update={"low": None, "high": None})


def _sound_ablation(one):
    has_width = one.low is not None and one.low < one.high
    return one if has_width else one.model_copy(update={"low": None, "high": None})


def _ablated(name, what, settings):
    for chosen in settings:
        flags = [word for key, value in chosen.items() for word in (f"--{key}", str(value))]
        rules = RULES[name].removeprefix("random,")
        words = ["edgewise", "eval", f"zoo:{name}", "--ablate", what, "--episodes", "400", "--seed", "11"]
        for row in printed([*words, "--baselines", rules, *flags])["ablations"]:
            yield AblationFigure(
                low=row["difference_low"],
                high=row["difference_high"],
                **{key: row[key] for key in ("without", "settings", "episodes", "measure", "difference")},
                changed_actions=row["changed_actions"],
            )


def main():
    """Write new cards."""
    for name in sys.argv[1:] or zoo_names():
        card = remeasured(name)
        path = FOLDER / name / CARD
        digests.replace(path, (json.dumps(card.to_plain(), indent=1) + "\n").encode())
        sys.stderr.write(f"{name}: {len(card.figures)} figures\n")


if __name__ == "__main__":
    main()
