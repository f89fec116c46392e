"""Replays recorded trajectories of the reference swarm in float64: `python -m tests.parity.swarm FILE`."""

import sys

import torch
from tensordict import TensorDict
from tests.parity.program import compare_file

from edgewise.envs.registry import make_env


def replay(case: dict) -> dict[str, float]:
    """The largest difference of one recorded episode, by what differs."""
    places = {
        name: torch.tensor(case[source], dtype=torch.float64).unsqueeze(0)
        for name, source in (("position", "agents"), ("goal", "goals"), ("obstacle", "obstacles"))
    }
    agents, obstacles = places["position"].shape[1], places["obstacle"].shape[1]
    sizes = {"num_agents": agents, "num_obstacles": obstacles, "max_steps": len(case["steps"])}
    env = make_env("swarm", ego_view=True, **sizes)
    born = places | {
        "active": torch.ones(1, agents, dtype=torch.bool),
        "obstacle_mask": torch.ones(1, obstacles, dtype=torch.bool),
        "crowded": torch.zeros(1, dtype=torch.int64),
        "step": torch.zeros(1, dtype=torch.int64),
    }
    state = TensorDict(env.initial_state(born), [1])
    worst: dict[str, float] = {}

    def compare(name: str, ours: torch.Tensor, theirs: list) -> None:
        difference = (ours - torch.tensor(theirs, dtype=torch.float64)).abs().max()
        worst[name] = max(worst.get(name, 0.0), float(difference))

    for step in case["steps"]:
        moved = env.advance(state, torch.tensor([step["actions"]]))
        state = TensorDict({**state, **moved.state, "step": state["step"] + 1}, [1])
        local = [state["velocity"], state["position"], state["goal"] - state["position"]]
        compare("obs", torch.cat(local, -1)[0], step["obs"])
        compare("reward", moved.reward[0], step["reward"])
        if "nodes" in step:
            ego = env.observe(state)["agents"]["ego"]
            compare("nodes", ego["nodes"][0], step["nodes"])
            for agent in range(agents):
                compare("distances", ego["distance"][0, agent], step["distances"])
    return worst


def main(arguments: list[str]) -> int:
    return compare_file(arguments, replay, name="swarm", about=__doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
