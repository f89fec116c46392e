"""The marine environment: boats with two thrusters in a current."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.entries import Entries
from edgewise.envs.transition import Transition
from edgewise.graphs.actions import AgentsContinuous, AgentsDiscrete
from edgewise.models.compile import compile_module
from edgewise.systems.marine import colregs, dynamics, field, observe, scenario, sensing
from edgewise.systems.marine.config import MarineConfig
from edgewise.systems.marine.dynamics import Motion
from edgewise.systems.marine.models.config import OBJECT_SCALE, SELF_SCALE
from edgewise.systems.marine.sensing import Scene

STEP_COST = 0.1
RULE_COST = 0.1
COLLISION_COST = 5.0
GOAL_REWARD = 10.0
GOAL_RADIUS = 2.0
DISCOUNT = 0.99
"""Discount factor of the metric `discounted`."""


class MarineEnv(GraphEnv[MarineConfig]):
    """Robots cross a current to their goals without collisions. README.md is the card.

    Example:
        >>> env = MarineEnv(MarineConfig(num_robots=(3, 5), num_obstacles=4), num_envs=8, seed=0)
        >>> env.rollout(3)["agents", "ego", "objects"].shape
        torch.Size([8, 3, 5, 5, 5])
    """

    stage_settings = ("num_robots", "num_obstacles", "num_cores", "min_start_goal_dis")

    edge_index: Tensor
    choices: Tensor
    sizes: Tensor
    own_scale: Tensor
    object_scale: Tensor

    def setup(self) -> None:
        """Define the graph and the action layout, and compile the hot functions if asked to."""
        config, device = self.config, self.device
        self.noisy = config.noisy
        self.graph = observe.graph_spec(config)
        robots = config.robot_capacity
        self.actions = (
            AgentsContinuous(robots, 2)
            if config.actions == "continuous"
            else AgentsDiscrete(robots, dynamics.NUM_CHOICES)
        )
        self._move = compile_module(dynamics.move, enabled=config.compile)
        self._perceive = compile_module(sensing.perceive, enabled=config.compile)
        self._violation = compile_module(colregs.violation, enabled=config.compile)
        self.register_buffer("edge_index", observe.edge_index(config).to(device))
        self.register_buffer("choices", dynamics.choices(torch.empty(0, device=device)))
        self.register_buffer("sizes", sensing.size_table(device))
        self.register_buffer("own_scale", 1.0 / torch.tensor(SELF_SCALE, device=device))
        self.register_buffer("object_scale", 1.0 / torch.tensor(OBJECT_SCALE, device=device))

    def check_stage(self, stage: MarineConfig) -> None:
        """Refuse a stage that needs more robots, obstacles or vortices than the environment has room for."""
        kinds = ("robots", "obstacles", "cores")
        for kind, needed, room in zip(kinds, stage.capacity, self.built_with.capacity, strict=True):
            if needed > room:
                raise ConfigError(
                    f"num_{kind} {getattr(stage, f'num_{kind}')} does not fit: there is room for {room}",
                    hint=f"build it with max_{kind}={needed}",
                )

    def spawn(self, count: int) -> Entries:
        """Sample new worlds with every robot at rest in the water."""
        stage = self.config
        wanted = scenario.Wanted(
            self.sample_int(stage.num_robots, count),
            self.sample_int(stage.num_obstacles, count),
            self.sample_int(stage.num_cores, count),
            self.sample_float(stage.min_start_goal_dis, count),
        )
        room = scenario.Capacity(*self.built_with.capacity)
        placed = scenario.sample_worlds(wanted, room, generator=self.generator, parity=self.config.parity)
        at_rest = torch.zeros_like(placed["heading"])
        water = torch.zeros_like(placed["position"])
        if not self.config.parity:
            water = field.velocity(
                placed["position"], cores=placed["core"], circulation=placed["circulation"]
            )
        return self.initial_state(
            placed
            | {
                "through_water": at_rest.unsqueeze(-1).repeat(1, 1, 3),
                "over_ground": torch.cat((water, at_rest.unsqueeze(-1)), -1),
                "thrust": torch.zeros_like(water),
            }
        )

    def initial_state(self, placed: dict[str, Tensor]) -> dict[str, Tensor]:
        """Complete a state from positions and motion: first perception, all sums zero."""
        motion = _motion(placed)
        none = placed["heading"].new_zeros(len(placed["heading"]))
        nobody = torch.zeros_like(placed["active"])
        score = {name: none.clone() for name in ("seconds", "energy", "earned", "discounted")}
        seen, _ = self._sense(motion, _scene(placed))
        return {**placed, **seen, **score, "reached": nobody, "collided": nobody.clone()}

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Apply thrust, move the robots, update perception and compute rewards."""
        config, active = self.config, state["active"]
        before = _motion(state)
        rates = action if config.actions == "continuous" else self.choices.to(state["goal"].dtype)[action]
        after = self._move(before, rates, cores=state["core"], circulation=state["circulation"])
        after = _where_active(active, after, before)
        seen, collided = self._sense(after, _scene(state))
        left = dynamics.length(state["goal"] - after.position)
        reached = (left <= GOAL_RADIUS) & active
        ended, collided, arrived = self._endings(state, collided, reached)
        off_course = self._violation(seen["objects"], seen["object_mask"], seen["own"][..., 2:4])
        progress = dynamics.length(state["goal"] - before.position) - left
        reward = progress - STEP_COST - RULE_COST * off_course
        reward = reward - COLLISION_COST * collided + GOAL_REWARD * arrived
        reward = reward.masked_fill(~active, 0.0)
        reached = reached if config.parity else arrived
        changed = {
            **after._asdict(),
            **seen,
            **_updated_sums(state, reward, after.thrust),
            "reached": state["reached"] | reached,
            "collided": state["collided"] | collided,
        }
        over = collided.any(-1) if config.end_at_first_collision else None
        return Transition(changed, reward=reward, terminated=over, agents_terminated=ended)

    def _endings(self, state: TensorDict, collided: Tensor, reached: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return which robots end now, which of them collided and which arrived, each `[B, A]` bool.

        A robot that collides does not arrive. With `parity`, the time limit terminates robots, and neither
        collision nor arrival counts in that step, as in the reference.
        """
        arrived = reached & ~collided
        if not self.config.parity:
            return collided | arrived, collided, arrived
        late = (state["step"].unsqueeze(-1) + 1 >= self.config.max_steps) & state["active"]
        return collided | arrived | late, collided & ~late, arrived & ~late

    def _sense(self, motion: Motion, scene: Scene) -> tuple[dict[str, Tensor], Tensor]:
        """Return perception as entries of the state, and which robots collide, `[B, A]` bool.

        Robots that were active before the step perceive and are perceived, even if they end in it.
        """
        config, noise = self.config, None
        if self.noisy:
            noise = sensing.sample_noise(
                scene,
                position=config.position_noise,
                velocity=config.velocity_noise,
                sizes=self.sizes if config.radius_noise else None,
                generator=self.generator,
            )
        found = self._perceive(
            motion, scene, noise, detection_range=config.detection_range, count=config.max_objects
        )
        seen = {name: getattr(found, name) for name in ("own", "objects", "object_mask")}
        if config.graph_edges:
            seen |= {"seen": found.sensed.features, "detected": found.sensed.detected}
        return seen | {"present": scene.active}, found.collided

    def observe(self, state: TensorDict) -> Entries:
        """Return each robot's own view, the graph and the metrics."""
        own, listed = state["own"], state["objects"]
        seen = state["seen"] if self.config.graph_edges else None
        if self.config.normalise:
            own, listed = own * self.own_scale, listed * self.object_scale
            seen = None if seen is None else seen * self.object_scale
        return {
            "graph": observe.graph(state, own, seen=seen, index=self.edge_index),
            "agents": {"ego": {"self": own, "objects": listed, "mask": state["object_mask"]}},
            "metrics": observe.metrics(state, max_steps=self.config.max_steps),
        }


def _motion(state: Entries | TensorDict) -> Motion:
    return Motion(*(state[name] for name in Motion._fields))


def _scene(state: Entries | TensorDict) -> Scene:
    return Scene(*(state[name] for name in Scene._fields))


def _where_active(active: Tensor, after: Motion, before: Motion) -> Motion:
    """Return `after` for `active` robots `[B, A]` and `before` for the others."""
    vectors = active.unsqueeze(-1)
    pairs = zip(after, before, strict=True)
    return Motion(
        *(torch.where(active if now.ndim == active.ndim else vectors, now, then) for now, then in pairs)
    )


def _updated_sums(state: TensorDict, reward: Tensor, thrust: Tensor) -> dict[str, Tensor]:
    """Add this step to the sums over robots of the episode, each `[B]`."""
    active, total = state["active"], reward.sum(-1)
    effort = thrust.abs().sum(-1).masked_fill(~active, 0.0).sum(-1)
    return {
        "seconds": state["seconds"] + dynamics.STEP_SECONDS * active.sum(-1),
        "energy": state["energy"] + dynamics.STEP_SECONDS * effort,
        "earned": state["earned"] + total,
        "discounted": state["discounted"] + DISCOUNT ** state["step"] * total,
    }
