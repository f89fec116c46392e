"""PPO learns proofs over UMLS, where rules prove much that is false and embeddings know better."""

from __future__ import annotations

from edgewise.systems.reasoning.recipes.knowledge_graph import reasoning_recipe

RECIPE = reasoning_recipe(
    "umls",
    summary="proofs over UMLS beside embeddings; give the folder as --env.data",
    rules="rules_few.txt",
    max_successors=64,
    max_steps=4,
)
