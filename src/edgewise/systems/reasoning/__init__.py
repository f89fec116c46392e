"""The reasoning system: prove queries of a knowledge graph from its facts and rules. See README.md."""

from edgewise.plugins import Environment, System, Verb

SYSTEM = System(
    name="reasoning",
    environments={
        "reasoning": Environment(
            env="edgewise.systems.reasoning.env:ReasoningEnv",
            config="edgewise.systems.reasoning.config:ReasoningConfig",
            summary="prove queries of a knowledge graph from its facts and rules, step by step",
            baselines="edgewise.systems.reasoning.baselines:BASELINES",
            replay="edgewise.systems.reasoning.render:replay",
            model="edgewise.systems.reasoning.models.config:ProofConfig",
        ),
    },
    recipes={
        "reasoning-countries": "edgewise.systems.reasoning.recipes.countries:RECIPE",
        "reasoning-family": "edgewise.systems.reasoning.recipes.knowledge_graph:FAMILY",
        "reasoning-mined": "edgewise.systems.reasoning.recipes.mined:RECIPE",
        "reasoning-umls": "edgewise.systems.reasoning.recipes.knowledge_graph:UMLS",
        "reasoning-wn18rr": "edgewise.systems.reasoning.recipes.knowledge_graph:WN18RR",
    },
    verbs=(
        Verb(
            "kge",
            "train and evaluate embeddings of a knowledge graph",
            "edgewise.systems.reasoning.commands.kge",
        ),
        Verb(
            "mine",
            "mine rules with confidences from a knowledge graph",
            "edgewise.systems.reasoning.commands.mine",
        ),
        Verb(
            "rules",
            "rank entities by a rule file, or convert it",
            "edgewise.systems.reasoning.commands.rules",
        ),
        Verb(
            "prove",
            "search a knowledge graph exhaustively for proofs",
            "edgewise.systems.reasoning.commands.prove",
        ),
        Verb(
            "rank",
            "rank candidates by proofs, rules, embeddings or all of them",
            "edgewise.systems.reasoning.commands.rank",
        ),
        Verb(
            "explain",
            "show how a trained policy proves a query",
            "edgewise.systems.reasoning.commands.explain",
        ),
    ),
)
