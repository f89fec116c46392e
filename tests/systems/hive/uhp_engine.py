"""A UHP engine for tests: plays the last legal move of the plain-Python rules, in a process without torch.

python -m tests.systems.hive.uhp_engine [silent | illegal | dies]
"""

import sys

from tests.systems.hive.reference import PASS, Game

STEPS = {(1, 0): ("", "-"), (1, -1): ("", "/"), (0, -1): ("\\", ""), (-1, 0): ("-", "")}
STEPS |= {(-1, 1): ("/", ""), (0, 1): ("", "\\")}
BASE = "QSSBBGGGAAA"


def tile_name(tile):
    colour, letter, number = tile
    return f"{colour}{letter}{'' if letter in 'QMLP' else number}"


def place_of(text, game):
    """The hex that a destination names."""
    where = {tile_name(tile): place for place, stack in game.stacks.items() for tile in stack}
    for (q, r), (before, after) in STEPS.items():
        name = text.removeprefix(before) if before else text.removesuffix(after)
        if text == f"{before}{name}{after}" and name != text and name in where:
            return where[name][0] + q, where[name][1] + r
    return where[text]


def read(text, game):
    words = text.split()
    if words == ["pass"]:
        return PASS
    names = {tile_name(move[0]): move[0] for move in game.moves() if move != PASS}
    return names[words[0]], (0, 0) if len(words) == 1 else place_of(words[1], game)


def write(move, game):
    if move == PASS:
        return "pass"
    tile, (q, r) = move
    if not game.stacks:
        return tile_name(tile)
    stack = [each for each in game.stacks.get((q, r), ()) if each != tile]
    if stack:
        return f"{tile_name(tile)} {tile_name(stack[-1])}"
    for (step_q, step_r), (before, after) in STEPS.items():
        near = [each for each in game.stacks.get((q - step_q, r - step_r), ()) if each != tile]
        if near:
            return f"{tile_name(tile)} {before}{tile_name(near[-1])}{after}"
    raise AssertionError("a move touches nothing")


def main(fault):
    def say(*lines):
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()

    say("id plain 1", "ok")
    game = None
    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        if command == "newgame":
            kind, _, _, *moves = rest.split(";")
            if not kind.startswith("Base"):
                say(f"err {kind} is no type of game", "ok")
                continue
            game = Game(BASE + kind.removeprefix("Base").removeprefix("+"))
            for name in moves:
                move = read(name, game)
                assert move in game.moves(), name
                game.play(move)
            say(rest, "ok")
        elif fault == "dies":
            return
        elif fault == "silent":
            continue
        else:
            say("wA9 bQ-" if fault == "illegal" else write(sorted(game.moves(), key=str)[-1], game), "ok")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
