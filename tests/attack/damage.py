"""Damage to every file of a run folder: what each verb says to it, and whether a figure changes."""

import json
import os
import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.attack.judge import CRASHED, GOOD, judge, run, run_here, snapshot

from edgewise.runs.checkpoint import store

TRAINED = [
    "--training.total-frames=96",
    "--training.num-envs=4",
    "--training.rollout-length=8",
    "--algorithm.epochs=1",
    "--algorithm.minibatch-size=16",
    "--model.encoder.hidden=8",
    "--model.encoder.heads=2",
    "--model.encoder.layers=1",
    "--evaluation.every=40",
    "--evaluation.episodes=4",
    "--checkpoint.every=40",
    "--checkpoint.keep-last=2",
    "--training.curriculum=[]",
    "--env.num-nodes=[4,6]",
    "--logging.tensorboard=false",
]
VERBS = ("verify", "report", "eval", "resume")
UNREAD = ("lock", "report.html", "digests.jsonl")
"""Files on which no figure depends."""
EVERY = 50
"""Damages between two lines that say how far it is."""


def make_run(folder: Path) -> Path:
    """Train a small run with evaluations, replays and several checkpoints."""
    outcome = run_here(["train", "graphwalk-ppo", *TRAINED, "--out", folder])
    assert outcome.code == 0, outcome.err
    return folder


@dataclass(frozen=True)
class Damage:
    """One way to damage one file of a run."""

    file: str
    name: str

    def apply(self, folder: Path, dice: random.Random) -> None:
        """Damage the file in the run `folder`."""
        path = folder / self.file
        content = path.read_bytes()
        path.unlink()
        if self.name in SPECIAL:
            SPECIAL[self.name](path)
        else:
            path.write_bytes(WAYS[self.name](content, dice))


def _flip(content, dice):
    flipped = bytearray(content)
    flipped[dice.randrange(len(flipped))] ^= 1 << dice.randrange(8)
    return bytes(flipped)


def _digit(content, dice):
    """Change one digit, which no parser can notice."""
    places = [found.start() for found in re.finditer(rb"[1-9]", content)]
    if not places:
        return _flip(content, dice)
    place = dice.choice(places)
    return content[:place] + (b"3" if content[place : place + 1] != b"3" else b"7") + content[place + 1 :]


def _zeros(content, dice):
    start = dice.randrange(len(content))
    return content[:start] + bytes(min(16, len(content) - start)) + content[start + 16 :]


def _lines(content, dice):
    lines = content.splitlines(keepends=True)
    dice.shuffle(lines)
    return b"".join(lines)


WAYS = {
    "flip": _flip,
    "another flip": _flip,
    "digit": _digit,
    "zeros": _zeros,
    "half": lambda content, dice: content[: len(content) // 2],
    "last byte": lambda content, dice: content[:-1],
    "last line": lambda content, dice: b"".join(content.splitlines(keepends=True)[:-1]),
    "empty": lambda content, dice: b"",
    "longer": lambda content, dice: content + b"\0more",
    "lines": _lines,
    "deep": lambda content, dice: b"[" * 100_000,
    "nan": lambda content, dice: re.sub(rb"-?\d+\.\d+", b"NaN", content, count=2),
    "digits": lambda content, dice: re.sub(rb"\d+", b"7" * 5000, content, count=1),
    "bytes": lambda content, dice: b"\xff\xfe" + content,
    "list": lambda content, dice: b"[1, 2]",
}
SPECIAL = {"removed": lambda path: None, "folder": lambda path: path.mkdir(), "pipe": os.mkfifo}


def every_damage(folder: Path):
    """Return every damage to every file of a run, also to those of every checkpoint."""
    files = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    return [Damage(file, name) for file in files for name in (*WAYS, *SPECIAL)]


class Runs:
    """An undamaged run, what every verb makes of it, and a place for copies."""

    def __init__(self, place: Path, *, run=run) -> None:
        self.place, self.run = place, run
        self.whole = make_run(place / "whole")
        copied = self._copy(self.whole)
        self.expected = {}
        for verb in VERBS:
            outcome = run_here(self._command(verb, copied))  # imports what children would import otherwise
            assert outcome.code == 0, outcome.err
            self.expected[verb] = self._figures(verb, copied, outcome)

    def attack(self, damage: Damage, seed: int, *, verbs=VERBS):
        """Damage a copy, and yield verb, verdict and outcome for each verb that may read the file."""
        copied = self._copy(self.whole)
        damage.apply(copied, random.Random(seed))
        same = (
            damage.name not in SPECIAL
            and (copied / damage.file).read_bytes() == (self.whole / damage.file).read_bytes()
        )
        before = snapshot(self.whole)
        for verb in verbs:
            if damage.file.startswith("checkpoints/step") and verb == "report":
                continue
            if (
                damage.file.startswith(("evaluations", "replays", "metrics", "timing", "events"))
                and verb == "eval"
            ):
                continue
            outcome = self.run(self._command(verb, copied))
            parts = damage.file.split("/")
            names = (parts[-1], *parts[1:2])
            if outcome.code == 0:
                found = self._figures(verb, copied, outcome)
                changed = self._differ(verb, found, damage.file)
                if verb == "report":
                    outcome = type(outcome)(0, outcome.out, outcome.err + " ".join(found["notes"]))
            else:
                changed = True
            verdict = judge(outcome, names=names, changed=changed)
            if verb == "verify" and verdict not in ("refused", CRASHED):
                verdict = "no effect" if same or damage.file in UNREAD else "SILENT"
            yield verb, verdict, outcome
        assert snapshot(self.whole) == before, "the original was written to"

    def _copy(self, folder: Path) -> Path:
        copied = self.place / "copy"
        shutil.rmtree(copied, ignore_errors=True)
        return Path(shutil.copytree(folder, copied))

    def _command(self, verb, folder):
        return {
            "verify": ["verify", folder],
            "report": ["report", folder],
            "eval": ["eval", folder, "--episodes", "2", "--json"],
            "resume": ["resume", folder, "--total-frames", "128"],
        }[verb]

    def _figures(self, verb, folder, outcome):
        if verb == "report":
            text = (folder / "report.html").read_text()
            return json.loads(re.search(r"<script[^>]*application/json[^>]*>(.*?)</script>", text, re.S)[1])
        if verb == "eval":
            return outcome.out
        if verb == "verify":
            return None
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in (folder / "metrics.csv", *_files(folder / "evaluations"), *_weights(folder))
            if path.is_file()
        }

    def _differ(self, verb, found, file):
        expected = self.expected[verb]
        if verb == "report":
            return {**found, "notes": None} != {**expected, "notes": None}
        if verb == "resume":
            return {**found, file: None} != {**expected, file: None}
        return found != expected


def _files(folder):
    return sorted(folder.iterdir()) if folder.is_dir() else ()


def _weights(folder):
    newest = store.latest(folder / "checkpoints")
    return [newest / "algorithm.safetensors", folder / "checkpoints" / "best.json"]


def attack_all(place: Path, damages=None, *, say=print):
    """Carry out every damage; return verdicts by verb, and the cases that are not good."""
    runs, table, bad = Runs(place), {}, []
    chosen = every_damage(runs.whole) if damages is None else damages(runs.whole)
    for number, damage in enumerate(chosen):
        if number % EVERY == 0:
            say(f"{number} of {len(chosen)} damages, {len(bad)} faults")
        for verb, verdict, outcome in runs.attack(damage, seed=number):
            counts = table.setdefault(verb, {})
            counts[verdict] = counts.get(verdict, 0) + 1
            if verdict not in GOOD:
                bad.append((damage, verb, verdict, outcome))
                say(f"{verdict}: {damage.file}: {damage.name}: {verb}: {outcome.err.strip()[-300:]}")
    return len(chosen), table, bad
