"""RL4CO's POMO, command by command; started by `benchmarks.rl4co` with the Python that has rl4co.

    python -P benchmarks/rl4co_peer.py '{"problem": "tsp", "size": 20, "width": 64, ...}'

It imports nothing of this project. Prints one JSON line of facts, then one for every line of its input:

    {"do": "train", "iterations": 1}             CPU seconds of training iterations
    {"do": "learn", "seconds": 120}              trains for so many CPU seconds, learning rate falling to zero
    {"do": "step", "worlds": 512}                CPU seconds of one random episode of its environment
    {"do": "decode", "file": "instances.json"}   costs of shared instances, greedy and with all starts
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")

import torch  # noqa: E402
from rl4co.envs import CVRPEnv, TSPEnv  # noqa: E402
from rl4co.models.zoo.am import AttentionModelPolicy  # noqa: E402
from rl4co.utils.ops import unbatchify  # noqa: E402
from tensordict import TensorDict  # noqa: E402

import rl4co  # noqa: E402


class Peer:
    """POMO with the library's own environment and policy, in a loop without Lightning."""

    def __init__(self, settings: dict[str, Any]) -> None:
        torch.manual_seed(settings["seed"])
        kinds = {"tsp": TSPEnv, "cvrp": CVRPEnv}
        self.settings, self.starts, self.batch = settings, settings["starts"], settings["batch"]
        self.env = kinds[settings["problem"]](
            generator_params={"num_loc": settings["size"]}, check_solution=False
        )
        self.policy = AttentionModelPolicy(
            env_name=settings["problem"],
            embed_dim=settings["width"],
            num_encoder_layers=settings["layers"],
            num_heads=settings["heads"],
            feedforward_hidden=settings["hidden"],
            normalization="instance",
            use_graph_context=False,
            check_nan=False,
            train_decode_type="multistart_sampling",
            val_decode_type="multistart_greedy",
            test_decode_type="greedy",
        )
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=settings["learning_rate"])

    def iteration(self) -> None:
        """Make one step of REINFORCE with the mean over starts as baseline."""
        td = self.env.reset(batch_size=[self.batch])
        out = self.policy(td, self.env, phase="train", num_starts=self.starts)
        reward, log_prob = (unbatchify(out[name], self.starts) for name in ("reward", "log_likelihood"))
        loss = -((reward - reward.mean(1, keepdim=True)) * log_prob).mean()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
        self.optimizer.step()

    def train(self, iterations: int) -> dict[str, float]:
        """Return the CPU seconds of some iterations."""
        begin = time.process_time()
        for _ in range(iterations):
            self.iteration()
        return {"seconds": time.process_time() - begin}

    def learn(self, seconds: float) -> dict[str, float]:
        """Train for so many CPU seconds while the learning rate falls to zero."""
        begin, count, share = time.process_time(), 0, 0.0
        while share < 1:
            for group in self.optimizer.param_groups:
                group["lr"] = self.settings["learning_rate"] * (1 - share)
            self.iteration()
            count += 1
            share = (time.process_time() - begin) / seconds
        return {"seconds": time.process_time() - begin, "instances": count * self.batch}

    @torch.no_grad()
    def step(self, worlds: int) -> dict[str, float]:
        """Return the CPU seconds of one episode of random legal actions."""
        td = self.env.reset(batch_size=[worlds])
        begin, steps = time.process_time(), 0
        while not td["done"].all():
            td["action"] = torch.rand(td["action_mask"].shape).masked_fill(~td["action_mask"], -1).argmax(-1)
            td = self.env.step(td)["next"]
            steps += 1
        return {"seconds": time.process_time() - begin, "frames": steps * worlds}

    @torch.no_grad()
    def decode(self, file: str) -> dict[str, Any]:
        """Return costs and CPU seconds of greedy decoding and of greedy decoding from all starts."""
        entries = {name: torch.tensor(value) for name, value in json.loads(Path(file).read_text()).items()}
        count = len(entries["locs"])
        td = self.env.reset(TensorDict(entries, [count]))
        self.policy.eval()
        found: dict[str, Any] = {}
        for name, phase, starts in (("greedy", "test", 0), ("multistart", "val", self.settings["size"])):
            begin = time.process_time()
            options = {"num_starts": starts} if starts else {}
            reward = self.policy(td.clone(), self.env, phase=phase, **options)["reward"]
            reward = unbatchify(reward, starts).max(1).values if starts else reward
            found[name] = (-reward).tolist()
            found[f"{name}_seconds"] = time.process_time() - begin
        self.policy.train()
        return found


def main() -> None:
    """Obey the commands on standard input."""
    torch.set_num_threads(1)
    peer = Peer(json.loads(sys.argv[1]))
    print(json.dumps({"rl4co": rl4co.__version__, "torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        print(json.dumps(getattr(peer, command.pop("do"))(**command)), flush=True)


if __name__ == "__main__":
    main()
