"""PPO that begins as MaxWeight by degrees, on small conflict graphs, for unseen ones of other sizes."""

from __future__ import annotations

from edgewise.algorithms.config import PPOConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.queueing.models.config import SetModelConfig
from edgewise.systems.queueing.recipes.family_dagger import FAMILY

HUBS = (
    *("star8", "star12", "star16", "star24", "tree7", "tree15", "bipartite2x3", "bipartite2x6"),
    *("barabasi8*4", "barabasi12*4", "barabasi16*4", "barabasi24*4"),
)
"""Graphs with hubs of up to 23 neighbours."""

LONG = ("line12", "line20", "ring12", "ring18", "grid3x3", "grid3x6", "grid4x4")
"""Graphs without hubs that are as large."""

RECIPE = Recipe(
    "queueing-family-ppo",
    "PPO improves MaxWeight on conflict graphs of up to 24 links, for unseen ones of other sizes",
    # A distribution over whole sets needs no feature that breaks the symmetry between links. The prior is
    # MaxWeight by degrees: what is learned is a correction, and long queues still come first on unseen
    # graphs. Corrections of a hub's neighbours add up; times its degree, its queue outweighs them.
    env=QueueingConfig(
        graphs=(*FAMILY, *HUBS, *LONG),
        load=(0.6, 0.95),
        initial_queue=4,
        max_steps=200,
        # By total costs, advantages on a star of 24 links are ten times those on a line of four.
        reward_scale="nodes",
        node_priority="none",
        prior="degree-weight",
    ),
    model=SetModelConfig(encoder=EncoderConfig(hidden=32, layers=3), sets="whole", prior=2.0),
    algorithm=PPOConfig(
        gamma=0.99,
        lmbda=0.9,
        # Collecting takes half the time of one epoch: new data instead of further epochs.
        epochs=1,
        minibatch_size=1024,
        entropy_coefficient=0.02,
        normalise_value=True,
    ),
    training=TrainingConfig(
        total_frames=300_000,
        num_envs=256,
        rollout_length=32,
        schedules={
            "learning_rate": Linear(start=2e-3, end=1e-4),
            "entropy_coefficient": Linear(start=0.02, end=0.0),
        },
    ),
    evaluation=EvaluationConfig(
        every=100_000,
        episodes=96,
        # Larger than the training graphs; the results page uses other, still larger graphs.
        settings={
            "graphs": ["line7", "ring8", "grid2x4"],
            "load": 0.8,
            "initial_queue": 0,
        },
        baselines=("maxweight", "degree-maxweight", "max-departures", "local-greedy"),
        metric="backlog",
        maximise=False,
    ),
    checkpoint=CheckpointConfig(every=100_000),
)
