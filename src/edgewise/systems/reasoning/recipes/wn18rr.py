"""PPO learns proofs over WN18RR, which exist for a third of the queries; embeddings rank the rest."""

from __future__ import annotations

from edgewise.systems.reasoning.recipes.knowledge_graph import reasoning_recipe

RECIPE = reasoning_recipe(
    "wn18rr",
    summary="proofs over WordNet, to combine with embeddings; give the folder as --env.data",
    max_successors=262,
    max_steps=4,
    rules="rules_custom_recall_sorted.txt",
)
