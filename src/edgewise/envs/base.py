"""The base class of every environment: many worlds of one graph problem as a TorchRL EnvBase."""

from __future__ import annotations

import inspect
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
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
from edgewise.envs.entries import (
    Entries,
    join_rows,
    replace_rows,
    split_rows,
    to_new_tensordict,
    to_tensordict,
    where_rows,
)
from edgewise.envs.generators import restore_generator
from edgewise.envs.hold import Hold, advance_held, check_hold
from edgewise.envs.legality import check_actions
from edgewise.envs.policy import Policy
from edgewise.envs.ranges import RealNumbers, WholeNumbers, lower_bound, upper_bound
from edgewise.envs.specs import (
    check_described,
    check_names,
    check_room,
    check_setup,
    done_spec,
    spec_like,
    wrong_return,
)
from edgewise.envs.stages import changed_settings, check_stage_fits
from edgewise.envs.transition import DONE, Transition, apply_transition
from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.keys import GRAPH, MASK, PRIOR, STEP
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.step_spec import StepSpec
from edgewise.plugins import load
from edgewise.plugins.declarations import config_class_of
from edgewise.scale.devices import refuse_out_of_memory

__all__ = ["GraphEnv", "Transition"]

ConfigT = TypeVar("ConfigT", bound=Config)
UNUSUAL = {"_compiled_step_and_maybe_reset", "_torchrl_native_autoreset"}
"""Attributes that TorchRL sets on environments whose steps it changes."""


def _without_self(method: Callable[..., None]) -> inspect.Signature:
    """Return the signature of a method as callers see it."""
    signature = inspect.signature(method)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


class GraphEnv(EnvBase, Generic[ConfigT]):
    """Many worlds of one graph problem, stepped together as tensors.

    A subclass implements `setup`, `spawn`, `advance`, `observe` and, if some actions are illegal, `mask`. If
    the graph stays the same within an episode, `describe` returns it, and networks encode it once. The
    TensorDict holds the whole state of a world under `state`; the object holds settings, constants and a
    generator.

    The base adds `step` `[B]` int64 to the state and, if agents act, `active` and `terminated` `[B, A]` bool.
    It truncates a world after `config.max_steps` steps if the config has that field.

    An action may be held: `hold` steps of the world, or all of an episode, are then one step of the
    environment, with the sum of their rewards. It is the time scale of decisions that a rule executes.

    Args:
        config: settings of the environment; the defaults of its config class if not given.
        num_envs: number of worlds B; the batch size is `[B]`.
        seed: the same seed gives the same worlds; None for different ones each time.
        device: of all tensors.

    Attributes:
        config: the settings of the current stage; those given until `apply_stage` is called. Everything that
            an environment reads during an episode is thus the stage's setting.
        built_with: the settings as given, from which `setup` made all shapes.
        graph: shape of the observed graphs.
        actions: action layout.
        generator: source of all randomness. Draw with `torch.rand`, `torch.randn` or `torch.randint`.
        hold: steps of a world that an action is held for, or `episode`; that of the config if it has such a
            field, else 1, unless `setup` sets it.
        check_actions: whether `step` refuses illegal actions with an error. False by default, since the check
            takes time and synchronises with an accelerator; evaluation sets it.
        stage_settings: names of config fields that `apply_stage` may change; None, the default, for all that
            fit the shapes of the environment.
        rules: hand-written policies by name, as a mapping or its address, of which `config.prior` may name
            one. What it would do is then observed as `action_prior`, for models with `model.prior`.
        num_symmetries: number of symmetries that `apply_symmetry` knows, of which number 0 changes nothing.
        observes_together: whether `step_and_maybe_reset` observes stepped and new worlds in one call, which
            pays where `observe` has many operations. It must then draw no random numbers.
    """

    stage_settings: ClassVar[tuple[str, ...] | None] = None
    rules: ClassVar[Mapping[str, Callable[[Any], Policy]] | str | None] = None
    num_symmetries: ClassVar[int] = 1
    observes_together: ClassVar[bool] = False
    check_actions: bool = False

    config: ConfigT
    built_with: ConfigT
    graph: GraphSpec
    actions: ActionLayout
    generator: torch.Generator
    hold: Hold

    def __init__(
        self,
        config: ConfigT | None = None,
        *,
        num_envs: int = 1,
        seed: int | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        """Build the worlds; the arguments are those of the class."""
        if num_envs < 1:
            raise ConfigError(f"num_envs must be 1 or more, got {num_envs}")
        super().__init__(device=torch.device(device), batch_size=(num_envs,))
        settings: Any = config_class_of(type(self))() if config is None else config
        self.config = self.built_with = settings
        self.max_steps: int | None = getattr(self.config, "max_steps", None)
        self.hold = getattr(self.config, "hold", 1)
        self._fitting_stages: list[ConfigT] = []
        self.generator = _make_generator(self.device)
        with refuse_out_of_memory(f"a world of {self.name}", hint="use smaller graphs"):
            self.setup()
            check_setup(self)
            check_hold(self.hold, max_steps=self.max_steps, env=self.name)
            self._has_default_mask = type(self.actions).default_mask is not ActionLayout.default_mask
            self._describes = type(self).describe is not GraphEnv.describe
            self._prior_rule = self._make_prior_rule()
            check_room(self.graph, num_envs, device=self.device, env=self.name)
            self._build_specs()
        self.set_seed(seed)

    __signature__: ClassVar[inspect.Signature] = _without_self(__init__)

    def __repr__(self) -> str:
        """Return the name, the number of worlds, the graphs, the actions and the settings that were set."""
        graph, config = self.graph, self.config
        edges = type(graph.edges).__name__
        settings = ", ".join(f"{name}={getattr(config, name)!r}" for name in sorted(config.model_fields_set))
        return (
            f"{type(self).__name__}({self.num_envs} worlds of up to {graph.num_nodes} nodes, {edges} edges, "
            f"actions {self.actions!r}, on {self.device}{f', {settings}' if settings else ''})"
        )

    def _make_prior_rule(self) -> Policy | None:
        """Build the rule that `config.prior` names; None if there is none."""
        name = getattr(self.config, "prior", None)
        if self.rules is None or name in (None, "none"):
            return None
        known = load(self.rules) if isinstance(self.rules, str) else self.rules
        if name not in known:
            raise ConfigError(
                f"env.prior: got {name}, which is no rule of {self.name}", hint=f"it has {', '.join(known)}"
            )
        rule: Policy = known[name](self)
        return rule

    @abstractmethod
    def setup(self) -> None:
        """Set `self.graph` and `self.actions` from `self.config`; register constant tensors as buffers."""

    @abstractmethod
    def spawn(self, count: int) -> Entries:
        """Sample the initial state of `count` worlds from `self.generator` and the settings in `self.config`.

        If agents act, the entry `active` `[count, A]` bool marks those that exist; without it, all do.
        """

    @abstractmethod
    def advance(self, state: TensorDict, action: Any) -> Transition:
        """Compute one step of the worlds in `state`, without changing `state`.

        Args:
            state: of B worlds.
            action: a tensor of B actions, or their parts by name if the layout is composed of several; or
                what `decide` makes of them.
        """

    def decide(self, state: TensorDict, action: Any) -> Any:  # noqa: ARG002
        """Return what `advance` gets as `action` while an action is held; computed once for each action.

        A rule that an action parametrises can do its costly part here: shortest paths of the lengths that the
        action gives to links, for instance. By default the action itself.
        """
        return action

    @abstractmethod
    def observe(self, state: TensorDict) -> Entries:
        """Return the observation of the worlds in `state`: `graph` and, optionally, `player` and `metrics`.

        With `describe`, it returns `step` instead of `graph`: what changes from step to step, see `StepSpec`.
        Observations of single agents go into a mapping `agents`, to which the base adds its flags.
        """

    def whole_observation(self, state: TensorDict) -> dict[str, Any]:
        """Return everything that `observe` returns, with the graph also where `describe` returns it."""
        seen = dict(self.observe(state).items())
        described = self.describe(state)
        return seen if described is None else {**seen, GRAPH: described}

    def describe(self, state: TensorDict) -> Entries | None:  # noqa: ARG002
        """Return the entries of `graph` if they stay the same within an episode; None if they change.

        It is called once per episode. Networks then encode a graph once, and read `step` at every step.
        """
        return None

    def apply_symmetry(self, state: TensorDict, symmetry: Tensor) -> Entries:  # noqa: ARG002
        """Return the entries of the state that change under a symmetry `[B]` int64, of `num_symmetries`.

        The same actions then have the same rewards. Symmetry 0 changes nothing.
        """
        return {}

    def mask(self, state: TensorDict) -> Any:  # noqa: ARG002
        """Return which actions are legal, `[B, ...]` bool in the mask shape of the action layout.

        None if all are. Of an action that is composed of parts, a mapping from names of parts to masks.
        """
        return None

    def check_stage(self, stage: ConfigT) -> None:
        """Raise ConfigError if worlds of `stage` do not fit into `self.graph`; by default, by trying them."""
        if stage not in self._fitting_stages:
            check_stage_fits(self, stage)
            self._fitting_stages.append(stage)

    @property
    def name(self) -> str:
        """Name of the environment: its class without `Env`, in lower case, words joined by underscores."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__.removesuffix("Env")).lower()

    @property
    def num_envs(self) -> int:
        """Number of worlds B."""
        return int(self.batch_size[0])

    @property
    def num_agents(self) -> int:
        """Number of agent slots A; zero if the action layout has no agents."""
        return self.actions.num_agents

    def sample_int(self, setting: WholeNumbers, count: int) -> Tensor:
        """Sample an integer per world, uniform in the range of a setting, `[count]` int64."""
        low, high = int(lower_bound(setting)), int(upper_bound(setting))
        return torch.randint(low, high + 1, (count,), generator=self.generator, device=self.device)

    def sample_float(self, setting: RealNumbers, count: int) -> Tensor:
        """Sample a real number per world, uniform in the range of a setting, `[count]` float."""
        low, high = lower_bound(setting), upper_bound(setting)
        return low + (high - low) * torch.rand(count, generator=self.generator, device=self.device)

    def apply_stage(self, **settings: Any) -> None:
        """Make `self.config` the settings of a stage; what `spawn` reads takes effect in worlds that start.

        Args:
            settings: values for fields of the config; none to return to `built_with`.

        Raises:
            ConfigError: a field may not change between stages, its value is invalid, or worlds do not fit.
        """
        allowed = settings if self.stage_settings is None else self.stage_settings
        foreign = sorted(set(settings) - set(allowed))
        if foreign:
            raise ConfigError(
                f"{type(self).__name__} cannot change {', '.join(foreign)} from stage to stage",
                hint=f"it can change {', '.join(allowed) or 'nothing'}",
            )
        schema = type(self.config)
        layers = [Layer("the config", self.built_with.to_plain()), from_keywords(schema, settings)]
        stage = resolve(schema, layers) if settings else self.built_with
        self.check_stage(stage)
        self.follow(stage)

    def follow(self, stage: ConfigT) -> None:
        """Make `self.config` the given settings, which are not checked."""
        if stage != self.config:
            self.config, self.max_steps = stage, getattr(stage, "max_steps", None)
            self.hold = getattr(stage, "hold", self.hold)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator and the settings of the stage."""
        return {"generator": self.generator.get_state(), "stage": self._stage_settings()}

    def load_state_dict(self, state: Mapping[str, Any], *, strict: bool = True) -> None:
        """Restore what `state_dict` returned, so that this environment continues like that one.

        Args:
            state: from `state_dict`.
            strict: False restores the stage and keeps the own generator. TorchRL does so when it loads the
                state of one environment into all its workers.
        """
        if state["stage"] != self._stage_settings():
            self.apply_stage(**state["stage"])
        if strict:
            restore_generator(self.generator, state["generator"])

    def _stage_settings(self) -> dict[str, Any]:
        names = self.stage_settings or changed_settings(self.built_with, self.config)
        return self.config.model_dump(mode="json", include=set(names))

    def to(self, device: torch.device | str) -> Self:
        """Move to another device; a generator cannot move, so a new one is made there with the same seed."""
        seed = self.generator.initial_seed()
        moved: Self = super().to(device)
        if moved.generator.device != moved.device:
            moved.generator = _make_generator(moved.device).manual_seed(seed)
        return moved

    def rand_action(self, tensordict: TensorDictBase | None = None) -> TensorDictBase:
        """Set random actions from torch's default generator; legal ones if there is an observation."""
        if tensordict is None or tensordict.get(GRAPH, None) is None:
            return super().rand_action(tensordict)
        return tensordict.set("action", self.actions.sample(tensordict, self.graph))

    def step(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Write the outcome of `action` under `next`; other entries of `tensordict` stay."""
        self._assert_tensordict_shape(tensordict)
        names = tensordict.keys()
        if "_step" in names or "next" in names:
            return super().step(tensordict)
        return tensordict.set("next", self._step(tensordict))

    def step_and_maybe_reset(self, tensordict: TensorDictBase) -> tuple[TensorDictBase, TensorDictBase]:
        """Make a step and return it with the next root, in which worlds that are done are new ones."""
        names, hooked = tensordict.keys(), self._post_step_mdp_hooks is not None
        together = self.observes_together and self._can_sync and not self._describes
        if hooked or "_step" in names or "next" in names or not UNUSUAL.isdisjoint(self.__dict__):
            return super().step_and_maybe_reset(tensordict)
        if not together:
            stepped = self.step(tensordict)
            return stepped, self.maybe_reset(self._next_root(stepped))
        self._assert_tensordict_shape(tensordict)
        after, outcome = self._advanced(tensordict)
        rows = outcome["done"].squeeze(-1).nonzero().squeeze(-1)
        states = join_rows(after, self._initial_state(len(rows))) if len(rows) else after
        entries = self._root_entries(states, self.num_envs + len(rows))
        following, new = split_rows(entries, self.num_envs) if len(rows) else (entries, {})
        stepped = tensordict.set("next", self._tensordict({**following, **outcome}, self.num_envs))
        root = self._next_root(stepped)
        if len(rows):
            new |= {name: torch.zeros_like(outcome[name][rows]) for name in DONE}
            root = self._tensordict({**dict(root.items()), **replace_rows(root, new, rows)}, self.num_envs)
        return stepped, root

    def new_worlds(self, count: int) -> TensorDict:
        """Return the roots of `count` new worlds, whatever the batch size of the environment."""
        return self._tensordict(self._initial_root(count), count)

    def worlds_in(self, state: TensorDictBase) -> TensorDict:
        """Return the roots of any number of worlds that go on from the given states."""
        count, device = len(state), self.device
        not_done = {name: torch.zeros(count, 1, dtype=torch.bool, device=device) for name in DONE}
        return self._tensordict({**self._root_entries(dict(state.items()), count), **not_done}, count)

    def under_symmetries(self, root: TensorDictBase, symmetry: Tensor) -> TensorDict:
        """Return the roots of worlds `[B]`, each under a symmetry `[B]` int64, of `num_symmetries`."""
        state = root["state"].clone()
        return self.worlds_in(state.update(dict(self.apply_symmetry(state, symmetry).items())))

    def simulate(self, tensordict: TensorDictBase) -> TensorDict:
        """Return the entries of `next` after `action`, for any number of worlds, in any states."""
        return self._step(tensordict)

    def maybe_reset(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Return `tensordict` with new worlds in the rows that are done; other rows stay."""
        root, done = dict(tensordict.items()), tensordict.get("done").squeeze(-1)
        if self._can_sync:
            rows = done.nonzero().squeeze(-1)
            if not len(rows):
                return tensordict
            new = self._initial_root(len(rows))
            renewed = new if len(rows) == self.num_envs else replace_rows(root, new, rows)
        else:
            renewed = where_rows(done, self._initial_root(self.num_envs), root)
        return self._tensordict({**root, **renewed}, self.num_envs)

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        after, outcome = self._advanced(tensordict)
        count = len(outcome["reward"])
        entries = {**self._root_entries(after, count, before=tensordict), **outcome}
        stepped = tensordict.get("_step", None)
        if stepped is not None:
            entries = _step_only(stepped.view(count), entries, tensordict)
        return self._tensordict(entries, count)

    def _advanced(self, tensordict: TensorDictBase) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the state after `action` and the outcome of the step: reward and flags."""
        if self.check_actions:
            check_actions(tensordict, self.actions, self.graph, name=self.name)
        before: TensorDict = tensordict.get("state")
        action = self.decide(before, self.actions.unpack(tensordict.get("action"), self.graph))
        return advance_held(
            lambda state: self._advanced_once(self._tensordict(state, len(before)), action),
            dict(before.items()),
            hold=self.hold,
            max_steps=self.max_steps,
            can_sync=self._can_sync,
        )

    def _advanced_once(self, before: TensorDict, action: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
        moved = self.advance(before, action)
        if not isinstance(moved, Transition):
            raise wrong_return(self, "advance", moved)
        return apply_transition(before, moved, max_steps=self.max_steps)

    def _reset(self, tensordict: TensorDictBase | None = None) -> TensorDict:
        chosen = None if tensordict is None else tensordict.get("_reset", None)
        if tensordict is None or chosen is None:
            return self._tensordict(self._initial_root(self.num_envs), self.num_envs)
        chosen = chosen.view(self.batch_size)
        new = self._initial_root_where(chosen)
        state = tensordict.get("state", None)
        if state is not None:
            state = where_rows(chosen, new["state"], state)
            flags = {name: tensordict.get(name, new[name]) & ~chosen.unsqueeze(-1) for name in DONE}
            new = {**self._root_entries(state, self.num_envs), **flags}
        return self._tensordict(new, self.num_envs)

    def _reset_proc_data(
        self, tensordict: TensorDictBase | None, tensordict_reset: TensorDictBase
    ) -> TensorDictBase:
        """Return `tensordict` with the chosen rows reset; new worlds are never done, so none is checked."""
        if tensordict is None:
            return tensordict_reset
        chosen = tensordict.pop("_reset", None)
        if chosen is not None:
            shared = {name: value for name, value in tensordict_reset.items() if name in tensordict}
            tensordict_reset.update(where_rows(chosen.view(self.batch_size), shared, tensordict))
        return tensordict.update(tensordict_reset)

    @property
    def _can_sync(self) -> bool:
        """Whether Python may branch on values of tensors: free on a CPU, a synchronisation elsewhere."""
        return bool(self.device.type == "cpu")

    @property
    def _step_mdp(self) -> Callable[[TensorDictBase], TensorDictBase]:
        return self._next_root

    def _next_root(self, tensordict: TensorDictBase) -> TensorDict:
        """Return the next root: the entries of `tensordict`, updated by those of `next` but the reward."""
        root = dict(tensordict.items())
        root.update(root.pop("next").items())
        del root["reward"]
        return to_new_tensordict(root, tensordict.batch_size, self.device)

    def _initial_state(self, count: int) -> dict[str, Any]:
        """Return the state of `count` new worlds."""
        spawned = self.spawn(count)
        if not isinstance(spawned, Mapping | TensorDictBase):
            raise wrong_return(self, "spawn", spawned)
        state = dict(spawned.items())
        for name, value in state.items():
            if isinstance(value, Tensor) and tuple(value.shape[:1]) != (count,):
                raise ConfigError(
                    f"{self.name}: `state.{name}` must have a row for each of {count} worlds, is "
                    f"{list(value.shape)}"
                )
        state["step"] = torch.zeros(count, dtype=torch.int64, device=self.device)
        if self.num_agents:
            ended = torch.zeros(count, self.num_agents, dtype=torch.bool, device=self.device)
            state.setdefault("active", ~ended)
            state["terminated"] = ended
        return state

    def _initial_root(self, count: int) -> dict[str, Any]:
        """Return all entries of the root of `count` new worlds."""
        state = self._initial_state(count)
        not_done = torch.zeros(count, 1, dtype=torch.bool, device=self.device)
        entries = self._root_entries(state, count)
        return {**entries, **{name: not_done.clone() for name in DONE}}

    def _initial_root_where(self, chosen: Tensor) -> dict[str, Any]:
        """Return roots of new worlds in the rows `chosen` `[B]` bool, and copies of them in the others."""
        if not self._can_sync or not chosen.any():
            return self._initial_root(self.num_envs)
        new = self._tensordict(self._initial_root(int(chosen.sum())), int(chosen.sum()))
        return dict(new[(chosen.cumsum(0) - 1).clamp(min=0)].items())

    def _root_entries(
        self, state: Entries, count: int, *, before: TensorDictBase | None = None
    ) -> dict[str, Any]:
        """Return state, observation, mask and agents' flags of `count` worlds in `state`.

        Args:
            state: of the worlds.
            count: number of worlds.
            before: the root of the step that led there, whose `graph` stays if the environment describes it
                once; None describes it.
        """
        current = self._tensordict(state, count)
        observed = self.observe(current)
        if not isinstance(observed, Mapping | TensorDictBase):
            raise wrong_return(self, "observe", observed)
        entries = {**dict(observed.items()), "state": current}
        mask = self.mask(current)
        if self._describes:
            graph = self.describe(current) if before is None else before.get(GRAPH, None)
            entries |= {} if graph is None else {GRAPH: graph}
            mask = before.get(MASK, None) if mask is None and before is not None else mask
        if mask is None and self._has_default_mask:
            mask = self.actions.default_mask(entries[GRAPH])
        if self.num_agents:
            active = current.get("active")
            flags = {"active": active, "terminated": current.get("terminated")}
            entries["agents"] = {**entries.get("agents", {}), **flags}
            mask = None if mask is None else mask | ~active.unsqueeze(-1)
        if mask is not None:
            entries[MASK] = mask
        if self._prior_rule is not None:
            seen = self._tensordict(entries, count)
            action = self._prior_rule(self._tensordict(entries, count))["action"]
            prior = self.actions.as_prior(action, seen, self.graph)
            if self.num_agents:
                prior = prior.masked_fill(~current.get("active").unsqueeze(-1), 0.0)
            entries[PRIOR] = prior
        return entries

    def _tensordict(self, entries: Entries, count: int) -> TensorDict:
        return to_tensordict(entries, torch.Size((count,)), self.device)

    def _build_specs(self) -> None:
        """Build all specs from one sampled world; this happens before the seed is set."""
        sample = self._tensordict(self._initial_root(1), 1)
        count, device = self.num_envs, self.device
        check_described(sample, env=type(self).__name__, describes=self._describes)
        if self._describes:
            self.graph = replace(self.graph, step=StepSpec.of(sample[STEP], env=type(self).__name__))
        check_names(sample[GRAPH], self.graph, env=type(self).__name__)
        observation = spec_like(sample.exclude(*DONE), count)
        observation[GRAPH] = self.graph.composite((count,), device)
        self.observation_spec = observation
        self.state_spec = Composite({"state": observation["state"].clone()}, shape=(count,), device=device)
        edges = self.graph.edges_of(sample[GRAPH]).mask.shape[-1]
        self.action_spec = self.actions.spec(self.graph, num_envs=count, num_edges=edges, device=device)
        agents = (self.num_agents,) if self.num_agents else ()
        self.reward_spec = Unbounded((count, *agents, 1), device=device)
        self.done_spec = done_spec(count, device)

    def _set_seed(self, seed: int | None) -> None:
        if seed is None:
            self.generator.seed()
        else:
            self.generator.manual_seed(seed)


def _make_generator(device: torch.device) -> torch.Generator:
    """Make a generator for `device`, or for the CPU if the device is only simulated by FakeTensorMode."""
    present = device.type == "cpu" or torch.get_device_module(device).is_available()
    return torch.Generator(device if present else "cpu")


def _step_only(stepped: Tensor, entries: dict[str, Any], tensordict: TensorDictBase) -> dict[str, Any]:
    """Return `entries` in the rows `stepped` `[B]` bool; other worlds stay and get no reward."""
    unchanged = dict(tensordict.items())
    unchanged["reward"] = torch.zeros_like(entries["reward"])
    return where_rows(stepped, entries, unchanged)
