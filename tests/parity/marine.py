"""Replays recorded trajectories of the reference's boats in float64: `python -m tests.parity.marine FILE`."""

import math
import sys

import torch
from tests.parity.program import compare_file
from tests.systems.marine.worlds import placed, step, still

MOTION = ("position", "velocity_water", "velocity", "thrust")


def replay(case: dict) -> dict[str, float]:
    """The largest difference of one recorded episode, by what differs; infinite for other outcomes."""
    world = {name: case[name] for name in ("obstacles", "cores")}
    env = still(case["robots"], **world, actions=case["action_type"])
    state = placed(env, case["robots"], **world)
    idle = 0 if case["action_type"] == "discrete" else [0.0, 0.0]
    worst = dict.fromkeys((*MOTION, "heading", "reward", "self", "objects", "outcome"), 0.0)

    def compare(name: str, ours: list, theirs: list) -> None:
        difference = torch.tensor(ours, dtype=torch.float64) - torch.tensor(theirs, dtype=torch.float64)
        worst[name] = max(worst[name], float(difference.abs().max())) if difference.numel() else worst[name]

    for recorded in case["steps"]:
        if state["active"][0].tolist() != recorded["active"]:
            worst["outcome"] = math.inf
            break
        actions = [idle if action is None else action for action in recorded["actions"]]
        state, outcome = step(env, state, actions)
        for robot, theirs in enumerate(recorded["robots"]):
            if theirs is None:
                continue
            ours = _robot(state[0], robot)
            for name in MOTION:
                compare(name, ours[name], theirs["pose"][:2] if name == "position" else theirs[name])
            compare("heading", _circle(ours["heading"]), _circle(theirs["pose"][2]))
            compare("self", ours["self"], theirs["self_obs"])
            compare("reward", [float(outcome["reward"][0, robot])], [theirs["reward"]])
            same_end = ours["outcome"] in theirs["outcome"] and ours["done"] == theirs["done"]
            if not same_end or len(ours["objects"]) != len(theirs["objects"]):
                worst["outcome"] = math.inf
            else:
                compare("objects", ours["objects"], theirs["objects"])
    return worst


def _circle(heading: float) -> list[float]:
    """A heading as a point on the circle, where 0 and 2π are one."""
    return [math.cos(heading), math.sin(heading)]


def _robot(state, robot: int) -> dict:
    """Everything that is recorded of one robot, as our state has it."""
    outcome = "collision" if state["collided"][robot] else "goal" if state["reached"][robot] else "normal"
    return {
        "position": state["position"][robot].tolist(),
        "heading": float(state["heading"][robot]),
        "velocity_water": state["through_water"][robot].tolist(),
        "velocity": state["over_ground"][robot].tolist(),
        "thrust": state["thrust"][robot].tolist(),
        "self": state["own"][robot].tolist(),
        "objects": state["objects"][robot][state["object_mask"][robot]].tolist(),
        "outcome": outcome,
        "done": bool(state["terminated"][robot]),
    }


def main(arguments: list[str]) -> int:
    return compare_file(arguments, replay, name="marine", about=__doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
