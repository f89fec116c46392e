"""Job shops: schedule the operations of jobs on machines so that all are finished soon."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.entries import Entries
from edgewise.envs.ranges import lower_bound, upper_bound
from edgewise.envs.transition import Transition
from edgewise.graphs.actions import ChooseFromSet
from edgewise.graphs.edges import Explicit
from edgewise.graphs.keys import MASK
from edgewise.graphs.spec import GraphSpec
from edgewise.problems.config import JobShopConfig

NODE_FEATURES, STEP_FEATURES = 8, 9


class JobShopEnv(GraphEnv[JobShopConfig]):
    """Choose the job whose next operation is scheduled, as early as possible, until all are.

    The reward is minus the growth of the makespan, as a share of the largest load of a machine. The nodes are
    the operations, job by job, and then the machines. Edges join an operation with the one before and the one
    after in its job, and with its machine.
    """

    def setup(self) -> None:
        """Build the edges that do not depend on the instance: those along jobs."""
        config = self.config
        for name in ("num_jobs", "num_machines"):
            if lower_bound(getattr(config, name)) < 1:
                raise ConfigError(f"{name}: got {getattr(config, name)}, expected 1 or more")
        self.jobs, self.machines = int(upper_bound(config.num_jobs)), int(upper_bound(config.num_machines))
        operations = torch.arange(self.jobs * self.machines, device=self.device)
        by_job = operations.view(self.jobs, self.machines)
        before, after = by_job[:, :-1].reshape(-1), by_job[:, 1:].reshape(-1)
        chain = torch.stack((torch.cat((before, after)), torch.cat((after, before))))
        self.register_buffer("chain", chain)
        self.register_buffer("operations", operations)
        count = chain.shape[1] + 2 * len(operations)
        kinds = torch.cat(
            (torch.zeros(len(before)), torch.ones(len(before)), torch.full((2 * len(operations),), 2.0))
        )
        self.register_buffer("kinds", torch.nn.functional.one_hot(kinds.long(), 3).float().to(self.device))
        edges = Explicit(count, num_features=3)
        self.graph = GraphSpec(len(operations) + self.machines, NODE_FEATURES, edges=edges, node_types=2)
        self.actions = ChooseFromSet(self.jobs)

    def spawn(self, count: int) -> Entries:
        """Sample durations, and for every job the order of its machines."""
        shape, low_high = (count, self.jobs, self.machines), self.config.durations
        jobs, machines = (
            self.sample_int(self.config.num_jobs, count),
            self.sample_int(self.config.num_machines, count),
        )
        low, high = int(lower_bound(low_high)), int(upper_bound(low_high))
        duration = torch.randint(low, high + 1, shape, generator=self.generator, device=self.device)
        slots = torch.arange(self.machines, device=self.device)
        order = torch.rand(shape, generator=self.generator, device=self.device)
        machine = order.masked_fill(slots >= machines.view(-1, 1, 1), 2.0).argsort(-1)
        return self.start(duration.float(), machine, jobs, machines)

    def start(self, duration: Tensor, machine: Tensor, jobs: Tensor, machines: Tensor) -> dict[str, Tensor]:
        """Return the state in which given shops begin.

        Args:
            duration: `[B, J, M]` float; beyond the shop's own jobs and machines it may be anything.
            machine: `[B, J, M]` int64, the machine of each operation.
            jobs: `[B]`, the number of jobs.
            machines: `[B]`, the number of machines.
        """
        count, device = len(duration), duration.device
        is_job = torch.arange(self.jobs, device=device) < jobs.unsqueeze(-1)
        is_machine = torch.arange(self.machines, device=device) < machines.unsqueeze(-1)
        exists = is_job.unsqueeze(-1) & is_machine.unsqueeze(1)
        duration = duration.masked_fill(~exists, 0.0)
        work = duration.flip(-1).cumsum(-1).flip(-1)
        load = torch.zeros(count, self.machines, device=device).scatter_add(
            1, machine.flatten(1), duration.flatten(1)
        )
        return {
            "duration": duration,
            "machine": machine,
            "work": torch.nn.functional.pad(work, (0, 1)),
            "load": load,
            "is_job": is_job,
            "is_machine": is_machine,
            "unit": duration.sum((1, 2)) / exists.sum((1, 2)),
            "scale": load.amax(-1),
            "next": torch.zeros(count, self.jobs, dtype=torch.int64, device=device),
            "ready": torch.zeros(count, self.jobs, device=device),
            "free": torch.zeros(count, self.machines, device=device),
            "left": load.clone(),
            "makespan": torch.zeros(count, device=device),
        }

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Schedule the next operation of a job at the end of its machine's schedule."""
        row = torch.arange(len(action), device=action.device)
        step = state["next"][row, action]
        duration, machine = state["duration"][row, action, step], state["machine"][row, action, step]
        end = torch.maximum(state["ready"][row, action], state["free"][row, machine]) + duration
        makespan = torch.maximum(state["makespan"], end)
        job, place = action.unsqueeze(-1), machine.unsqueeze(-1)
        following = state["next"].scatter(1, job, (step + 1).unsqueeze(-1))
        changes = {
            "next": following,
            "ready": state["ready"].scatter(1, job, end.unsqueeze(-1)),
            "free": state["free"].scatter(1, place, end.unsqueeze(-1)),
            "left": state["left"].scatter_add(1, place, -duration.unsqueeze(-1)),
            "makespan": makespan,
        }
        is_last = ((following >= state["is_machine"].sum(-1, keepdim=True)) | ~state["is_job"]).all(-1)
        reward = (state["makespan"] - makespan) / state["scale"]
        return Transition(changes, reward=reward, terminated=is_last)

    def describe(self, state: TensorDict) -> Entries:
        """Return operations and machines, with durations and loads relative to their means."""
        unit, duration = state["unit"].view(-1, 1, 1), state["duration"]
        exists = state["is_job"].unsqueeze(-1) & state["is_machine"].unsqueeze(1)
        total, count = state["work"][..., :1], state["is_machine"].sum(-1).view(-1, 1, 1)
        load = state["load"].gather(1, state["machine"].flatten(1)).view_as(duration)
        place = torch.arange(self.machines, device=duration.device) / count
        mean_load = state["load"].sum(-1).view(-1, 1, 1) / count
        mean_work = total.sum(1, keepdim=True) / state["is_job"].sum(-1).view(-1, 1, 1)
        features = torch.stack(
            (
                duration / unit,
                place.expand_as(duration),
                state["work"][..., :-1] / total.clamp(min=1),
                (total / mean_work).expand_as(duration),
                load / mean_load,
                duration * count / total.clamp(min=1),
                duration * state["is_job"].sum(-1).view(-1, 1, 1) / load.clamp(min=1),
                state["work"][..., :-1] / (unit * count),
            ),
            -1,
        )
        of_machines = torch.zeros(len(duration), self.machines, NODE_FEATURES, device=duration.device)
        of_machines[..., 0] = state["load"] / mean_load.squeeze(-1)
        nodes = len(self.operations) + self.machines
        node_type = (torch.arange(nodes, device=duration.device) >= len(self.operations)).long()
        at = len(self.operations) + state["machine"].flatten(1)
        own = self.operations.expand_as(at)
        chain = self.chain.expand(len(duration), -1, -1)
        here = torch.stack((torch.cat((own, at), 1), torch.cat((at, own), 1)), 1)
        is_operation = exists.flatten(1)
        joined = is_operation[:, self.chain].all(1)
        return {
            "x": torch.cat((features.flatten(1, 2), of_machines), 1),
            "node_type": node_type.expand(len(duration), -1),
            "node_mask": torch.cat((is_operation, state["is_machine"]), 1),
            "edge_index": torch.cat((chain, here), -1),
            "edge_mask": torch.cat((joined, is_operation, is_operation), 1),
            "edge_attr": self.kinds.expand(len(duration), -1, -1),
        }

    def observe(self, state: TensorDict) -> Entries:
        """Offer the next operation of every job, and show how early it could begin and what is left after."""
        step, duration, machine, start = upcoming(state)
        operation = torch.arange(self.jobs, device=step.device) * self.machines + step
        free, left = (state[name].gather(1, machine) for name in ("free", "left"))
        work = at_step(state["work"], state["next"])
        open_jobs = unfinished(state)
        first = start.masked_fill(~open_jobs, torch.inf).amin(-1, keepdim=True)
        first = first.masked_fill(first == torch.inf, 0.0)
        path = state["ready"] + work
        longest = path.masked_fill(~open_jobs, -torch.inf).amax(-1, keepdim=True).clamp(min=0)
        unit, count = state["unit"].unsqueeze(-1), state["is_machine"].sum(-1, keepdim=True)
        x = torch.stack(
            (
                (state["ready"] - first) / (4 * unit),
                (free - first) / (4 * unit),
                (start - first) / (4 * unit),
                (start + duration - state["makespan"].unsqueeze(-1)) / (4 * unit),
                (path - longest) / (4 * unit),
                work / (count * unit),
                state["next"] / count,
                left / (state["is_job"].sum(-1, keepdim=True) * unit),
                (free - state["ready"]) / (4 * unit),
            ),
            -1,
        )
        share = state["next"].sum(-1, keepdim=True) / (count * state["is_job"].sum(-1, keepdim=True))
        return {
            "step": {"x": x.clamp(-8, 8), "u": share},
            "choices": operation,
            "metrics": {"makespan": state["makespan"]},
        }

    def mask(self, state: TensorDict) -> Tensor:
        """Allow jobs with operations left; in active schedules, those that compete for one machine.

        That machine has the operation that could end first, and its rivals could begin before that end.
        """
        open_jobs = unfinished(state)
        if not self.config.active:
            return open_jobs
        _, duration, machine, start = upcoming(state)
        end, job = (start + duration).masked_fill(~open_jobs, torch.inf).min(-1, keepdim=True)
        return open_jobs & (machine == machine.gather(1, job)) & ((start < end) | (start + duration <= end))


def unfinished(state: TensorDict) -> Tensor:
    """Return the jobs with operations left, `[B, J]` bool."""
    return state["is_job"] & (state["next"] < state["is_machine"].sum(-1, keepdim=True))


def upcoming(state: TensorDict) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return place, duration, machine and earliest start of the next operation of each job, `[B, J]` each."""
    step = state["next"].clamp(max=state["duration"].shape[-1] - 1)
    duration, machine = (at_step(state[name], step) for name in ("duration", "machine"))
    return step, duration, machine, torch.maximum(state["ready"], state["free"].gather(1, machine))


def at_step(values: Tensor, step: Tensor) -> Tensor:
    """Return the value of each job `[B, J, M]` at an operation `[B, J]`, `[B, J]`."""
    return values.gather(-1, step.unsqueeze(-1)).squeeze(-1)


Rule = Callable[[TensorDict], TensorDict]


def dispatch(score: Callable[[TensorDict], Tensor]) -> Callable[[JobShopEnv], Rule]:
    """Return a dispatching rule: of the jobs that can begin first, it takes the one with the highest score.

    Its schedules keep no machine waiting while an operation is ready for it.
    """

    def build(env: JobShopEnv) -> Rule:  # noqa: ARG001
        def policy(root: TensorDict) -> TensorDict:
            state, allowed = root["state"], root[MASK]
            start = upcoming(state)[3].masked_fill(~allowed, torch.inf)
            first = allowed & (start <= start.amin(-1, keepdim=True))
            return root.set("action", score(state).masked_fill(~first, -torch.inf).argmax(-1))

        return policy

    return build


BASELINES = {
    "most_work_remaining": dispatch(lambda state: at_step(state["work"], state["next"])),
    "most_operations_remaining": dispatch(lambda state: -state["next"].float()),
    "shortest_processing_time": dispatch(lambda state: -upcoming(state)[1]),
    "first_come": dispatch(lambda state: -state["ready"]),
}
