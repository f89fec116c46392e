"""PPO learns to prove family relations in two steps, and to give up on false ones."""

from __future__ import annotations

from edgewise.systems.reasoning.recipes.knowledge_graph import reasoning_recipe

RECIPE = reasoning_recipe(
    "family",
    summary="proofs of family relations from eighty-odd rules; give the folder as --env.data",
    max_successors=130,
    max_steps=4,
)
