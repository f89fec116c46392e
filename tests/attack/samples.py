"""Small files of every kind that edgewise reads, right as they are; the attacks change them at random."""

import json

GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="w" attr.type="double"/>
<key id="d1" for="edge" attr.name="l" attr.type="double"/>
<graph edgedefault="directed">
<node id="a"><data key="d0">1.5</data></node><node id="b"><data key="d0">2</data></node>
<edge source="a" target="b"><data key="d1">0.5</data></edge>
</graph></graphml>
"""

GRAPHS = {
    "graph.graphml": GRAPHML,
    "graph.edgelist": "0 1\n1 2\n2 0\n",
    "graph.txt": "0 1\n1 2\n2 0\n",
    "graph.csv": "source,target,length\n0,1,0.5\n1,2,1.5\n",
    "graph.json": json.dumps(
        {
            "directed": True,
            "multigraph": False,
            "graph": {},
            "nodes": [{"id": 0, "x": 1.0}, {"id": 1, "x": 2.0}],
            "links": [{"source": 0, "target": 1, "length": 0.5}],
        }
    ),
}

TRIPLES = {
    "train.txt": "ann\tmother\tbob\nbob\tfather\tcid\ncid\tbrother\tdot\n",
    "valid.txt": "ann\tmother\tdot\n",
    "test.txt": "bob\tfather\tdot\n",
    "facts.txt": "ann\tmother\tbob\n",
    "rules.txt": "mother(X,Y) :- brother(Y,Z), mother(X,Z)\n",
    "domain2constants.txt": "people\tann bob cid dot\n",
}

EVALUATION = {
    "format": "edgewise-evaluation/1",
    "env": "graphwalk",
    "policy": "policy",
    "baseline": False,
    "frames": 96,
    "seed": 3,
    "episodes": 2,
    "deterministic": True,
    "settings": {},
    "returns": [1.0, None],
    "lengths": [3, 4],
    "finished": [True, True],
    "metrics": {"success": [1.0, 0.0]},
    "agent_returns": None,
}

REPLAY = {
    "format": "edgewise-replay/1",
    "title": "walk",
    "layers": [{"name": "nodes", "kind": "points", "x": [0, 1], "y": [0, 1]}],
    "frames": [{"nodes": {"x": [0, 2]}}],
}

PLUGIN = '''
import torch
import edgewise as ew
from edgewise.config.model import Config

class LampConfig(Config):
    """Settings of a lamp."""
    max_steps: int = 5
    """Steps."""

class LampEnv(ew.GraphEnv[LampConfig]):
    """A lamp."""
    def setup(self):
        self.graph = ew.GraphSpec(2, 1, edges=ew.Explicit(1))
        self.actions = ew.ChooseNode()
'''
