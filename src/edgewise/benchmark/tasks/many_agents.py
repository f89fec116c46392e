"""Many agents: steer a team of any size to its goals between obstacles; agents see what is near.

n is the number of agents, trained with three; the square grows with the team, so that its density stays.
`family` has nine obstacles in place of three. The return is the mean over agents. No optimum is known; the
reference is the best column.
"""

from edgewise.benchmark.task import Split, Task

TASK = Task(
    name="many-agents",
    card=__doc__,
    environment="swarm",
    measure="return",
    maximise=True,
    settings={"num_agents": 3, "num_obstacles": 3, "reward": "individual", "constant_density": True},
    splits=(
        Split("n", count=64),
        Split("2n", {"num_agents": 6, "num_obstacles": 6}, count=64),
        Split("10n", {"num_agents": 30, "num_obstacles": 30}, count=16),
        Split("family", {"num_obstacles": 9}, count=64),
    ),
    smoke=19_200,
)
