"""PPO learns proofs over UMLS, where the rules also prove many false atoms and embeddings rank better."""

from __future__ import annotations

from edgewise.systems.reasoning.recipes.knowledge_graph import reasoning_recipe

RECIPE = reasoning_recipe(
    "umls",
    summary="proofs over UMLS, to combine with embeddings; give the folder as --env.data",
    rules="rules_few.txt",
    max_successors=64,
    max_steps=4,
)
