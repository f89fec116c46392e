"""The base of every environment: a subclass says what a step does, the base makes a TorchRL EnvBase of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.data import Composite, Unbounded
from torchrl.envs import EnvBase

from edgewise.config.errors import ConfigError
from edgewise.config.layers import Layer
from edgewise.config.loading import resolve
from edgewise.config.model import Config
from edgewise.config.settings import from_keywords
from edgewise.envs.packing import Entries, choose_rows, pack, repack, replace_rows
from edgewise.envs.ranges import RealNumbers, WholeNumbers, highest, lowest
from edgewise.envs.specs import action_spec, check_names, done_spec, spec_like
from edgewise.envs.transition import DONE, Transition, follow
from edgewise.graphs.actions import (
    ActionLayout,
    AgentsContinuous,
    AgentsDiscrete,
    ChooseIndependentSet,
    ChooseNode,
)
from edgewise.graphs.generators import go_on
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.random_actions import random_action
from edgewise.graphs.spec import GraphSpec

__all__ = ["GraphEnv", "Transition"]

ConfigT = TypeVar("ConfigT", bound=Config)


class GraphEnv(EnvBase, Generic[ConfigT]):
    """Many worlds of one graph problem, stepped together as tensors.

    A subclass gives `setup`, `spawn`, `advance`, `observe` and, where actions are restricted, `mask`. All
    state of a world is in the TensorDict under `state`; the object holds settings, constants and a generator.

    The base adds to the state `step` `[B]` int64 and, where agents act, `active` and `terminated` `[B, A]`
    bool, and cuts a world off after `config.max_steps` steps where the config has that field.

    Args:
        config: the problem's settings.
        num_envs: how many worlds; the batch size is `[num_envs]`.
        seed: the same seed gives the same worlds; None for a new one each time.
        device: where all tensors live.

    Attributes:
        config: as given.
        stage: the settings that worlds born from now on follow; `config` until `apply_stage` says otherwise.
        graph: the shape of the observed graphs.
        actions: how the graphs are acted on.
        generator: where all randomness comes from. Draw with `torch.rand`, `torch.randn` or `torch.randint`.
        stage_settings: names of config fields that `apply_stage` may change.
    """

    stage_settings: ClassVar[tuple[str, ...]] = ()

    config: ConfigT
    stage: ConfigT
    graph: GraphSpec
    actions: ActionLayout
    generator: torch.Generator

    def __init__(
        self,
        config: ConfigT,
        *,
        num_envs: int = 1,
        seed: int | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        if num_envs < 1:
            raise ConfigError(f"num_envs must be 1 or more, got {num_envs}")
        super().__init__(device=torch.device(device), batch_size=(num_envs,))
        self.config = self.stage = config
        self.max_steps: int | None = getattr(config, "max_steps", None)
        self.generator = _generator_on(self.device)
        self.setup()
        self._build_specs()
        self.set_seed(seed)

    @abstractmethod
    def setup(self) -> None:
        """Set `self.graph` and `self.actions` from `self.config`; register constant tensors as buffers."""

    @abstractmethod
    def spawn(self, count: int) -> Entries:
        """The state of `count` new worlds, drawn from `self.generator` by the settings of `self.stage`.

        Where agents act, an entry `active` `[count, A]` bool says which agents exist; without, all do.
        """

    @abstractmethod
    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """One step of the worlds in `state`, which is left as it is."""

    @abstractmethod
    def observe(self, state: TensorDict) -> Entries:
        """What is seen of the worlds in `state`: `graph` and, if there are such, `player` and `metrics`.

        What single agents see besides goes into a mapping `agents`, to which the base adds its flags.
        """

    def mask(self, state: TensorDict) -> Tensor | None:  # noqa: ARG002
        """Which actions are legal, shaped as the action layout says; None where all are."""
        return None

    def check_stage(self, stage: ConfigT) -> None:
        """Raise ConfigError where worlds of `stage` do not fit into the graphs that were planned for."""

    @property
    def name(self) -> str:
        """What the environment is called: its class without `Env`, in small letters."""
        return type(self).__name__.removesuffix("Env").lower()

    @property
    def num_envs(self) -> int:
        """B, how many worlds there are."""
        return int(self.batch_size[0])

    @property
    def num_agents(self) -> int:
        """A, how many agent slots a world has; zero where the layout has no agents."""
        return self.actions.num_agents if isinstance(self.actions, AgentsDiscrete | AgentsContinuous) else 0

    def draw_whole(self, setting: WholeNumbers, count: int) -> Tensor:
        """A whole number for each of `count` worlds, uniform in the setting's range, `[count]` int64."""
        low, high = int(lowest(setting)), int(highest(setting))
        return torch.randint(low, high + 1, (count,), generator=self.generator, device=self.device)

    def draw_real(self, setting: RealNumbers, count: int) -> Tensor:
        """A number for each of `count` worlds, uniform in the setting's range, `[count]` float."""
        low, high = lowest(setting), highest(setting)
        return low + (high - low) * torch.rand(count, generator=self.generator, device=self.device)

    def apply_stage(self, **settings: Any) -> None:
        """Let worlds follow other settings from their next birth on; nothing is rebuilt, no world cut short.

        Args:
            settings: fields named in `stage_settings`, in place of the config's own; none to return to those.
        """
        foreign = sorted(set(settings) - set(self.stage_settings))
        if foreign:
            raise ConfigError(
                f"{type(self).__name__} cannot change {', '.join(foreign)} from stage to stage",
                hint=f"it can change {', '.join(self.stage_settings) or 'nothing'}",
            )
        schema = type(self.config)
        layers = [Layer("the config", self.config.to_plain()), from_keywords(schema, settings)]
        stage = resolve(schema, layers)
        self.check_stage(stage)
        self.stage = stage

    def state_dict(self) -> dict[str, Any]:
        """What the next births depend on: the generator's state and the stage's settings."""
        stage = self.stage.model_dump(mode="json", include=set(self.stage_settings))
        return {"generator": self.generator.get_state(), "stage": stage}

    def load_state_dict(self, state: Mapping[str, Any], *, strict: bool = True) -> None:
        """Continue as the environment that gave `state` would have.

        Args:
            state: what `state_dict` gave.
            strict: false to take up the stage alone and go on with one's own random numbers. So does TorchRL,
                which hands the state of one environment to all its workers.
        """
        self.apply_stage(**state["stage"])
        if strict:
            go_on(self.generator, state["generator"])

    def to(self, device: torch.device | str) -> Self:
        """Move to another device; a generator cannot move, so a new one starts there from the same seed."""
        seed = self.generator.initial_seed()
        moved: Self = super().to(device)
        if moved.generator.device != moved.device:
            moved.generator = _generator_on(moved.device).manual_seed(seed)
        return moved

    def rand_action(self, tensordict: TensorDictBase | None = None) -> TensorDictBase:
        """Legal random actions, masks obeyed, from torch's own random numbers; without observation, any."""
        if tensordict is None or tensordict.get(GRAPH, None) is None:
            return super().rand_action(tensordict)
        return tensordict.set("action", random_action(self.actions, self.graph, observation=tensordict))

    def step(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Write what follows from `action` under `next`; everything else in `tensordict` stays."""
        self._assert_tensordict_shape(tensordict)
        names = tensordict.keys()
        if "_step" in names or "next" in names:
            return super().step(tensordict)
        return tensordict.set("next", self._step(tensordict))

    def follow(self, tensordict: TensorDictBase) -> TensorDict:
        """What follows from `action` in any number of worlds, some of this environment's or not."""
        return self._step(tensordict)

    def maybe_reset(self, tensordict: TensorDictBase) -> TensorDictBase:
        """`tensordict` with new worlds in the rows that are done; the other rows stay as they are."""
        root, done = dict(tensordict.items()), tensordict.get("done").squeeze(-1)
        if self._asks_host:
            rows = done.nonzero().squeeze(-1)
            if not len(rows):
                return tensordict
            born = self._born(len(rows))
            renewed = born if len(rows) == self.num_envs else replace_rows(root, born, rows)
        else:
            renewed = choose_rows(done, self._born(self.num_envs), root)
        return self._packed({**root, **renewed}, self.num_envs)

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        before: TensorDict = tensordict.get("state")
        moved = self.advance(before, tensordict.get("action"))
        after, outcome = follow(before, moved, max_steps=self.max_steps)
        count = len(outcome["reward"])
        entries = {**self._seen(after, count), **outcome}
        stepped = tensordict.get("_step", None)
        if stepped is not None:
            entries = _hold(entries, tensordict, stepped.view(count))
        return self._packed(entries, count)

    def _reset(self, tensordict: TensorDictBase | None = None) -> TensorDict:
        chosen = None if tensordict is None else tensordict.get("_reset", None)
        if tensordict is None or chosen is None:
            return self._packed(self._born(self.num_envs), self.num_envs)
        chosen = chosen.view(self.batch_size)
        born = self._born_where(chosen)
        state = tensordict.get("state", None)
        if state is not None:
            state = choose_rows(chosen, born["state"], state)
            flags = {name: tensordict.get(name, born[name]) & ~chosen.unsqueeze(-1) for name in DONE}
            born = {**self._seen(state, self.num_envs), **flags}
        return self._packed(born, self.num_envs)

    def _reset_proc_data(
        self, tensordict: TensorDictBase | None, tensordict_reset: TensorDictBase
    ) -> TensorDictBase:
        """`tensordict` with the chosen rows reset. Births are never done, so there is nothing to check."""
        if tensordict is None:
            return tensordict_reset
        chosen = tensordict.pop("_reset", None)
        if chosen is not None:
            shared = {name: value for name, value in tensordict_reset.items() if name in tensordict}
            tensordict_reset.update(choose_rows(chosen.view(self.batch_size), shared, tensordict))
        return tensordict.update(tensordict_reset)

    @property
    def _asks_host(self) -> bool:
        """Whether to look at flags before acting on them: free on a CPU, a wait for the device elsewhere."""
        return bool(self.device.type == "cpu")

    @property
    def _step_mdp(self) -> Callable[[TensorDictBase], TensorDictBase]:
        return self._next_root

    def _next_root(self, tensordict: TensorDictBase) -> TensorDict:
        """The root one step on: what `next` has but the reward, over what `tensordict` has besides."""
        root = dict(tensordict.items())
        root.update(root.pop("next").items())
        del root["reward"]
        return repack(root, tensordict.batch_size, self.device)

    def _born(self, count: int) -> dict[str, Any]:
        """Everything in the root of `count` new worlds."""
        state = dict(self.spawn(count).items())
        state["step"] = torch.zeros(count, dtype=torch.int64, device=self.device)
        if self.num_agents:
            nobody = torch.zeros(count, self.num_agents, dtype=torch.bool, device=self.device)
            state.setdefault("active", ~nobody)
            state["terminated"] = nobody
        no = torch.zeros(count, 1, dtype=torch.bool, device=self.device)
        return {**self._seen(state, count), **{name: no.clone() for name in DONE}}

    def _born_where(self, chosen: Tensor) -> dict[str, Any]:
        """Roots of new worlds in the rows `chosen` `[B]` bool, and copies of some of them in the others."""
        if not self._asks_host or not chosen.any():
            return self._born(self.num_envs)
        born = self._packed(self._born(int(chosen.sum())), int(chosen.sum()))
        return dict(born[(chosen.cumsum(0) - 1).clamp(min=0)].items())

    def _seen(self, state: Entries, count: int) -> dict[str, Any]:
        """What the root tells of `count` worlds in `state`: state, observations, mask and agents."""
        packed = self._packed(state, count)
        entries = {**dict(self.observe(packed).items()), "state": packed}
        mask = self.mask(packed)
        if mask is None and isinstance(self.actions, ChooseNode | ChooseIndependentSet):
            mask = entries[GRAPH]["node_mask"]
        if self.num_agents:
            active = packed.get("active")
            flags = {"active": active, "terminated": packed.get("terminated")}
            entries["agents"] = {**entries.get("agents", {}), **flags}
            mask = None if mask is None else mask | ~active.unsqueeze(-1)
        if mask is not None:
            entries["action_mask"] = mask
        return entries

    def _packed(self, entries: Entries, count: int) -> TensorDict:
        return pack(entries, torch.Size((count,)), self.device)

    def _build_specs(self) -> None:
        """Specs from one world that no one will meet, drawn before the seed is set."""
        sample = self._packed(self._born(1), 1)
        count, device = self.num_envs, self.device
        check_names(sample[GRAPH], self.graph, env=type(self).__name__)
        seen = spec_like(sample.exclude(*DONE), count)
        seen[GRAPH] = self.graph.composite((count,), device)
        self.observation_spec = seen
        self.state_spec = Composite({"state": seen["state"].clone()}, shape=(count,), device=device)
        edges = self.graph.edges_of(sample[GRAPH]).mask.shape[-1]
        self.action_spec = action_spec(
            self.actions, self.graph, num_envs=count, num_edges=edges, device=device
        )
        agents = (self.num_agents,) if self.num_agents else ()
        self.reward_spec = Unbounded((count, *agents, 1), device=device)
        self.done_spec = done_spec(count, device)

    def _set_seed(self, seed: int | None) -> None:
        if seed is None:
            self.generator.seed()
        else:
            self.generator.manual_seed(seed)


def _generator_on(device: torch.device) -> torch.Generator:
    """A generator for `device`; a device that only FakeTensorMode knows borrows the CPU's."""
    present = device.type == "cpu" or torch.get_device_module(device).is_available()
    return torch.Generator(device if present else "cpu")


def _hold(entries: dict[str, Any], tensordict: TensorDictBase, stepped: Tensor) -> dict[str, Any]:
    """`entries` of a step that only the worlds in `stepped` `[B]` take; the others stay, for no reward."""
    still = dict(tensordict.items())
    still["reward"] = torch.zeros_like(entries["reward"])
    return choose_rows(stepped, entries, still)
