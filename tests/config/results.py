"""What follows from the settings of a config: a few steps, a forward pass, two batches, or a run's files."""

import hashlib
import tempfile
from pathlib import Path

import torch
from tensordict import TensorDictBase
from tests.algorithms.experts import SETTINGS as CLONE
from tests.algorithms.experts import imitator
from tests.algorithms.sea import SEA_OF, agent, sea
from tests.algorithms.worlds import SETTINGS as PPO
from tests.algorithms.worlds import SMALL, batches, learner, toy
from tests.search.tokens import TokensConfig, TokensEnv
from tests.training.toys import run, toy_config
from torchrl.envs.utils import ExplorationType, set_exploration_type

from edgewise.algorithms.apg import APG
from edgewise.algorithms.config import APGConfig, CloneConfig, EvolutionConfig, PPOConfig, ReinforceConfig
from edgewise.algorithms.evolution import Evolution
from edgewise.algorithms.expert_iteration import ExpertIteration
from edgewise.algorithms.expert_iteration_config import ExpertIterationConfig
from edgewise.algorithms.reinforce import REINFORCE
from edgewise.data.rollout import Rollout
from edgewise.envs.registry import make_env
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import ModelConfig

Result = dict[str, torch.Tensor]
RECORDS = ("evaluations", "replays")


def leaves(root: TensorDictBase, prefix: str = "") -> Result:
    found = {}
    for name, value in root.items(include_nested=True, leaves_only=True):
        found[prefix + (name if isinstance(name, str) else ".".join(name))] = value
    return found


def of_env(name):
    def result(**settings):
        env = make_env(name, num_envs=8, seed=0, **settings)
        torch.manual_seed(0)
        root, found = env.reset(), {}
        for number in range(8):
            step, root = env.step_and_maybe_reset(env.rand_action(root))
            found |= leaves(step, f"{number}.")
        edges = env.graph.edges_of(root["graph"])
        found |= {
            "edges": edges.index * edges.mask.unsqueeze(-2),
            "capacity": torch.tensor(env.graph.num_nodes),
        }
        return found if edges.attr is None else found | {"edge_features": edges.attr}

    return result


def of_encoder(**settings):
    return of_model(encoder={"hidden": 16, "layers": 1, "heads": 2} | settings)


def of_model(**settings):
    torch.manual_seed(0)
    config = ModelConfig.model_validate({"encoder": {"hidden": 16, "layers": 1, "heads": 2}} | settings)
    found = {}
    for name, settings in (("graphwalk", {}), ("swarm", {"continuous": True})):
        env = make_env(name, num_envs=4, seed=0, **settings)
        made = make_actor_critic(env.graph, env.actions, config)
        with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
            root = made.actor(env.reset())
            distribution, value = made.evaluate(root)
            found |= {
                f"{name}.action": root["action"],
                f"{name}.value": value,
                f"{name}.entropy": distribution.entropy(),
            }
        found |= {f"{name}.{key}": value for key, value in made.state_dict().items()}
    return found


def of_ppo(**settings):
    config = PPOConfig.model_validate(PPO.model_dump() | {"epochs": 2} | settings)
    env = toy("signals", num_envs=8)
    algorithm = learner(env, config=config)
    batch = Rollout(env, algorithm.policy, rollout_length=12).collect().clone()
    found = {}
    for number in range(2):
        found |= {f"{number}.{name}": value for name, value in algorithm.learn(batch.clone()).items()}
    return found | algorithm.actor_critic.state_dict()


def of_clone(**settings):
    config = CloneConfig.model_validate(CLONE.model_dump() | {"updates": 2, "minibatch_size": 16} | settings)
    env = toy("signals", num_envs=8)
    algorithm = imitator(env, config=config)
    torch.manual_seed(0)
    rollout, found = Rollout(env, algorithm.behaviour, rollout_length=8), {}
    for number in range(2):
        batch = rollout.collect().clone()
        found |= {f"{number}.action": batch["action"]} | algorithm.learn(batch)
    return found | algorithm.actor_critic.state_dict()


def of_agent(name):
    small = {"learning_starts": 0, "minibatch_size": 16, "updates_per_transition": 0.05, "tau": 0.5}

    def result(**settings):
        learner, env = agent(name, **(small | settings)), sea(SEA_OF[name], num_envs=6)
        torch.manual_seed(0)
        rollout, found = Rollout(env, learner.policy, rollout_length=8), {}
        for number in range(2):
            batch = rollout.collect().clone()
            found |= {f"{number}.action": batch["action"]}
            found |= {f"{number}.{key}": value for key, value in learner.learn(batch).items()}
        with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
            found["mode"] = learner.policy(env.reset())["action"]
        return found | {
            **learner.networks.state_dict(),
            **{f"target.{k}": v for k, v in learner.targets.state_dict().items()},
        }

    return result


def of_schedule(schema, **needed):
    def result(**settings):
        made = schema.model_validate(needed | settings)
        return {"values": torch.tensor([made.at(frames, 1000) for frames in range(0, 1200, 50)])}

    return result


def of_reinforce(**settings):
    small = {"baseline": "mean", "starts": 2, "longest_episode": 8}
    config = ReinforceConfig.model_validate(small | settings)
    env = toy("marked", num_envs=8)
    torch.manual_seed(0)
    algorithm, found = REINFORCE(make_actor_critic(env.graph, env.actions, SMALL).actor, config), {}
    for number, batch in enumerate(batches(env, algorithm, 2)):
        found |= leaves(batch, f"{number}.")
        found |= {f"{number}.{key}": value for key, value in algorithm.learn(batch).items()}
    return found | algorithm.policy.state_dict()


def of_evolution(**settings):
    config = EvolutionConfig.model_validate({"pairs": 3} | settings)
    env = toy("dials", num_envs=24)
    torch.manual_seed(0)
    algorithm, found = Evolution(make_actor_critic(env.graph, env.actions, SMALL).actor, config), {}
    for number, batch in enumerate(batches(env, algorithm, 2)):
        found |= leaves(batch, f"{number}.")
        found |= {f"{number}.{key}": value for key, value in algorithm.learn(batch).items()}
    return found | algorithm.policy.state_dict()


def of_apg(**settings):
    config = APGConfig.model_validate({"updates": 2, "minibatch_size": 8, "horizon": 2} | settings)
    env = toy("dials", num_envs=8)
    torch.manual_seed(0)
    actor = make_actor_critic(env.graph, env.actions, SMALL).actor
    algorithm = APG(actor, config, env=env)
    batch = next(batches(env, algorithm, 1))
    return algorithm.learn(batch) | actor.state_dict()


def of_expert_iteration(**settings):
    small = {"updates": 2, "minibatch_size": 16, "buffer_size": 64}
    config = ExpertIterationConfig.model_validate(small | settings)
    env = TokensEnv(TokensConfig(), num_envs=6, seed=0)
    torch.manual_seed(0)
    algorithm = ExpertIteration(make_actor_critic(env.graph, env.actions, SMALL), config, env=env, seed=0)
    rollout = Rollout(env, algorithm.behaviour, rollout_length=6, keep_state=True)
    batch = rollout.collect().clone()
    return {"action": batch["action"]} | algorithm.learn(batch) | algorithm.actor_critic.state_dict()


def of_self_play(**settings):
    """Three batches of small games, whose opponents are snapshots from the second on."""
    small = {"pool_share": 0.5, "pool_size": 2, "snapshot_every": 1, "epochs": 1} | settings
    sections = {
        "env": {"size": 2, "opening_plies": 0},
        "model": {"encoder": {"hidden": 8, "layers": 1}},
        "training": {"num_envs": 8, "rollout_length": 3, "curriculum": []},
        "evaluation": {"episodes": 2, "settings": {"size": 2}, "baselines": []},
    }
    config = load_config("hex-selfplay", keywords=sections)
    config = config.model_copy(update={"algorithm": config.algorithm.model_copy(update=small)})
    parts, found = Builder(config).parts(), {}
    torch.manual_seed(0)
    for number in range(3):
        batch = parts.rollout.collect()
        found |= {f"{number}.{key}": batch[key] for key in ("action", "player")}
        found |= {f"{number}.{key}": value for key, value in parts.algorithm.learn(batch).items()}
    pool = parts.rollout.state_dict()["pool"]
    return found | {f"pool.{key}": value for key, value in pool.items() if isinstance(value, torch.Tensor)}


def of_run(section=None):
    """A toy run by its folders, its metrics, and what was evaluated, recorded, saved and chosen as best."""

    def result(**settings):
        config = toy_config(**(settings if section is None else {section: settings}))
        with tempfile.TemporaryDirectory() as place:
            folder = run(Path(place) / "run", config).path
            return {
                _name(path.relative_to(folder)): _digest(path.read_bytes() if _is_compared(path) else b"")
                for path in folder.rglob("*")
            }

    return result


def _name(path):
    """The name of a file of a run, without the time in it."""
    return "tensorboard/events" if path.parts[0] == "tensorboard" else str(path)


def _is_compared(path):
    """Whether a file of a run has no times in it."""
    return path.suffix == ".safetensors" or (
        path.is_file() and (path.name in ("metrics.csv", "best.json") or path.parent.name in RECORDS)
    )


def _digest(content):
    return torch.tensor(list(hashlib.sha256(content).digest()))
