"""Files written by grammars: each follows its format, and puts odd things where the format allows them.

Edits of a sample (`inputs.py`) mostly break its syntax. A grammar gets past the parser of XML or JSON, to the
code that believes what it gets.
"""

import json

from edgewise.graphs.datasets import read_graphs
from edgewise.problems import files as problem_files
from edgewise.systems.hex.onnx_player import read_description
from edgewise.systems.multihop.networks.instance import read_instance
from edgewise.systems.reasoning.knowledge.dataset import load_dataset
from edgewise.systems.reasoning.knowledge.rule_files import read_rules

NAMES = (
    "a",
    "b",
    "c",
    "0",
    "1",
    "2",
    "-5",
    "--5",
    "007",
    "1e3",
    "\u0663",
    "\U0001d7db",
    "é",
    "a b",
    "a,b",
    '"',
    "'",
    "",
    "None",
    "~",
    "x" * 300,
)
NUMBERS = (
    "0",
    "1",
    "-1",
    "0.5",
    "1e3",
    "1e308",
    "-1e39",
    "1e999",
    "NaN",
    "inf",
    "-0",
    "1_0",
    "٣",
    "0x1f",
    "+1",
    ".5",
    "5.",
    "9" * 5000,
    "",
)
VALUES = (
    None, True, False, 0, 1, -1, 3, 2**31, 2**63, 10**30, 0.5, 1e39, 1e308, "", "a", "0", "nan", "a" * 300,
    [], [1], [1, [2]], [None], ["a"], {}, {"a": 1}, [0.5, 1.5], [[[[]]]], "\ud800",
)  # fmt: skip
ENCODINGS = (
    "UTF-8",
    "utf-8",
    "US-ASCII",
    "ISO-8859-1",
    "UTF-16",
    "utf-32",
    "cp037",
    "idna",
    "punycode",
    "hex",
    "rot13",
    "big5",
    "x",
    "",
)
TYPES = ("int", "long", "float", "double", "string", "boolean", "complex", "", "INT")


def node_id(dice, odd=0.15):
    """A name that is mostly one of few, so that edges have ends."""
    return dice.choice(NAMES) if dice.random() < odd else dice.choice(("a", "b", "c", "d"))


def number(dice):
    """A number as text, mostly a sane one."""
    return dice.choice(NUMBERS) if dice.random() < 0.2 else f"{dice.uniform(-3, 3):.3g}"


def value(dice):
    """A value of JSON, mostly a sane one."""
    return dice.choice(VALUES) if dice.random() < 0.25 else round(dice.uniform(-3, 3), 3)


def graphml(dice):
    """A GraphML document; elements may stand where they should not."""
    odd = dice.random() < 0.7

    def attribute(name, text):
        text = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
        return "" if odd and dice.random() < 0.06 else f' {name}="{text}"'

    def data():
        return "".join(
            f"<data{attribute('key', dice.choice(keys))}>{number(dice)}</data>"
            for _ in range(dice.choice((0, 1, 2)))
        )

    def element(depth=0):
        kind = dice.random()
        inner = data() + (element(depth + 1) if odd and depth < 3 and dice.random() < 0.1 else "")
        if kind < 0.5:
            return f"<node{attribute('id', node_id(dice))}>{inner}</node>"
        if kind < 0.9:
            way = attribute("directed", dice.choice(("true", "false", "no"))) if dice.random() < 0.1 else ""
            ends = attribute("source", node_id(dice)) + attribute("target", node_id(dice))
            return f"<edge{ends}{way}>{inner}</edge>"
        return dice.choice(
            (
                "<default>1</default>",
                "<hyperedge/>",
                data(),
                "<port name='p'/>",
                "<!-- -->",
                "<desc>x</desc>",
                "<graph/>",
                "<key id='d0'/>",
                "&#0;" if dice.random() < 0.2 else "&#65;",
                "<![CDATA[<]]>",
            )
        )

    keys = ["d0", "d1", "d2", *(["d9"] if odd else [])]
    said = dice.choice(ENCODINGS) if odd and dice.random() < 0.3 else "UTF-8"
    head = f'<?xml version="1.0" encoding="{said}"?>'
    if odd and dice.random() < 0.1:
        head += dice.choice(("<!DOCTYPE a>", '<!DOCTYPE a [<!ENTITY b "c">]>', "<?php ?>", "\0"))
    declared = "".join(
        f"<key{attribute('id', key)}{attribute('for', dice.choice(('node', 'edge', 'graph', 'all', 'port')))}"
        f"{attribute('attr.name', dice.choice(('w', 'type', 'x', 'y', 'pos', 'node_type', '')))}"
        f"{attribute('attr.type', dice.choice(TYPES))}>"
        + (f"<default>{number(dice)}</default>" if dice.random() < 0.3 else "")
        + "</key>"
        for key in keys[:3]
    )
    nodes = "".join(f'<node id="{name}"/>' for name in "abcd") if dice.random() < 0.7 else ""
    body = nodes + "".join(element() for _ in range(dice.randint(0, 6)))
    way = dice.choice(("directed", "undirected", "no", "", "true")) if odd else "directed"
    outer = dice.choice(("", ' xmlns="http://graphml.graphdrawing.org/xmlns"'))
    text = f"{head}<graphml{outer}>{declared}<graph{attribute('edgedefault', way)}>{body}</graph></graphml>"
    encoding = dice.choice(("utf-16", "utf-8-sig", "latin-1")) if odd and dice.random() < 0.1 else "utf-8"
    return text.encode(encoding, "replace")


def lines(dice, *, separator, header=()):
    """An edge list or a CSV of edges."""
    width = dice.choice((2, 2, 3, 4))
    rows = [list(header) + ["w", "w", "type"][: width - 2]] if header and dice.random() < 0.6 else []
    for _ in range(dice.randint(0, 6)):
        here = width + dice.choice((-1, 1)) if dice.random() < 0.05 else width
        rows.append([node_id(dice), node_id(dice), *(number(dice) for _ in range(here - 2))][:here])
    text = "".join(separator.join(row) + dice.choice(("\n", "\n", "\r\n", "\r", "\n\n")) for row in rows)
    comment = dice.choice(("", "# directed\n", "% x\n", "#\n"))
    return (comment + text).encode(dice.choice(("utf-8", "utf-8", "utf-8", "utf-16", "utf-8-sig")), "replace")


def node_link(dice):
    """A graph as JSON."""

    def attributes():
        names = ("w", "type", "x", "y", "pos", "node_type", "")
        return {dice.choice(names): value(dice) for _ in range(dice.choice((0, 0, 1, 2)))}

    ids = [dice.choice(VALUES) if dice.random() < 0.1 else each for each in range(dice.randint(0, 4))]
    nodes = [{"id": each, **attributes()} for each in ids]
    links = [
        {"source": dice.choice(ids), "target": dice.choice(ids), **attributes()}
        for _ in range(dice.randint(0, 5) if ids else 0)
    ]
    plain = {
        "directed": dice.choice((True, False, "no", "yes", 0, 1, None)) if dice.random() < 0.3 else False,
        "graph": dice.choice(VALUES) if dice.random() < 0.2 else attributes(),
        "nodes": nodes,
        dice.choice(("links", "edges")): links,
    }
    for group in (nodes, links):
        if group and dice.random() < 0.1:
            group[dice.randrange(len(group))] = dice.choice(VALUES)
    if dice.random() < 0.1:
        plain[dice.choice(sorted(plain))] = dice.choice(VALUES)
    return json.dumps(plain).replace('"a"', "7" * 5000 if dice.random() < 0.02 else '"a"').encode()


def written_graph(place, dice):
    """A graph of each format."""
    kind = dice.choice(("graphml", "graphml", "json", "csv", "edgelist", "txt"))
    content = {
        "graphml": graphml,
        "json": node_link,
        "csv": lambda dice: lines(dice, separator=",", header=("source", "target")),
        "edgelist": lambda dice: lines(dice, separator=" "),
        "txt": lambda dice: lines(dice, separator="\t"),
    }[kind](dice)
    file = place / f"graph.{kind}"
    file.write_bytes(content)
    read_graphs(str(file))


def written_knowledge(place, dice):
    """A knowledge graph: triples in either form, domains and rules."""
    odd = dice.choice((0.0, 0.0, 0.02, 0.1))
    relation = ("likes", "knows", "is", "p:q", "x(y", "'", "r,s", "")

    def triple(tabbed):
        head, tail = node_id(dice, odd), node_id(dice, odd)
        name = dice.choice(relation) if dice.random() < odd else "likes"
        if dice.random() < odd / 2:
            tabbed = not tabbed
        return "\t".join((head, name, tail)) if tabbed else f"{name}({head},{tail})."

    for split in ("train", "valid", "test", "facts"):
        file, tabbed = place / f"{split}.txt", dice.random() < 0.5
        rows = [triple(tabbed) for _ in range(dice.randint(0 if dice.random() < odd else 1, 6))]
        file.write_bytes("\n".join(rows).encode(dice.choice(("utf-8",) * 19 + ("utf-16",)), "replace"))
    domains = [
        f"domain{at} " + " ".join([node_id(dice, odd) for _ in range(dice.randint(1, 4))])
        for at in range(dice.randint(0, 3))
    ]
    (place / "domain2constants.txt").write_text("\n".join(domains))
    # Rules may only name what the triples have, so each relation and entity is there.
    known = "\n".join(f"{one}\tlikes\t{one}\n{one}\tknows\t{one}" for one in "abcd")
    if odd < 0.1:
        for split in ("train", "valid", "test", "facts"):
            (place / f"{split}.txt").write_text(known + "\n" + "\n".join(triple(True) for _ in range(3)))
    atoms = (
        "likes(X,Y)",
        "knows(X,Y)",
        "likes(Y,X)",
        "likes(X,'a')",
        "likes(X",
        "X",
        "",
        "likes()",
        "likes(X,Y,Z)",
    )

    def rule():
        usable = atoms if dice.random() < 0.3 else atoms[:3]
        body = ", ".join(dice.choice(usable) for _ in range(dice.randint(1, 3)))
        head = dice.choice(usable)
        return dice.choice(
            (
                f"r0:{number(dice)}:{body.lower()} -> {head.lower()}",
                f"{number(dice)}::{head} :- {body}.",
                f"{head} :- {body}.",
                f"{number(dice)}\t{number(dice)}\t{number(dice)}\t{head} <= {body}",
                f"?a  likes  ?b   => ?a  knows  ?b\t{number(dice)}\t{number(dice)}",
            )
        )

    (place / "rules.txt").write_text("\n".join(rule() for _ in range(dice.randint(0, 4))))
    found = load_dataset(place)
    read_rules(place / "rules.txt", found.vocabulary)


def written_network(place, dice):
    """A network of queues as JSON."""
    count = dice.choice((2, 3, 4))

    odd = dice.choice((0.0, 0.02, 0.1))

    def node():
        return dice.choice(VALUES) if dice.random() < odd else dice.randrange(count)

    def rate():
        return value(dice) if dice.random() < odd else dice.choice((1, 2))

    links = [
        {"start": one, "end": other, "rate": rate()} | ({"power": rate()} if dice.random() < 0.3 else {})
        for one in range(count) for other in range(count) if one != other and dice.random() < 0.9
    ]  # fmt: skip
    ends = [dice.sample(range(count), 2) if dice.random() > odd else [node(), node()] for _ in range(2)]
    if dice.random() < 0.5:
        flows = [{"source": one, "destination": other, "rate": rate()} for one, other in ends]
    else:
        flows = {str(one): {str(other): rate()} for one, other in ends}
    plain = {
        "nodes": count,
        "link_info": links,
        "class_info": flows,
        "link_distribution": dice.choice(("fixed", "poisson")),
        "arrival_distribution": dice.choice(("fixed", "poisson")),
    }
    for _ in range(dice.choice((0, 0, 0, 1))):
        plain[dice.choice(sorted(plain))] = dice.choice(VALUES)
    if dice.random() < 0.8:
        (place / "network.json").write_text(json.dumps(plain))
        read_instance(place / "network.json")
        return
    described = {
        "planes": ["mine", "theirs"],
        "size": value(dice),
        dice.choice(("border", "batch", "view")): value(dice),
    }
    if dice.random() < 0.7:
        described["size"] = 5
    (place / "described.json").write_text(json.dumps(described))
    read_description(place / "described.json")


def written_instance(place, dice):
    """An instance in a published format: TSPLIB, CVRPLIB, Taillard's or DIMACS'."""
    count = dice.choice((1, 2, 3, 5))
    said = dice.choice(NUMBERS) if dice.random() < 0.1 else str(count)
    kind = dice.choice(("plane", "shop", "links"))
    if kind == "plane":
        rows = [f"{node + 1} {number(dice)} {number(dice)}" for node in range(count)]
        text = f"NAME : x\nTYPE : TSP\nDIMENSION : {said}\nEDGE_WEIGHT_TYPE : EUC_2D\n"
        if dice.random() < 0.5:
            text += f"CAPACITY : {number(dice)}\n"
        text += "NODE_COORD_SECTION\n" + "\n".join(rows) + "\n"
        if dice.random() < 0.5:
            demands = [f"{node + 1} {dice.choice((0, 1, number(dice)))}" for node in range(count)]
            text += "DEMAND_SECTION\n" + "\n".join(demands) + f"\nDEPOT_SECTION\n {number(dice)}\n -1\n"
        read = problem_files.read_plane
    elif kind == "shop":
        machines = dice.choice((1, 2, 3))
        rows = [
            " ".join(
                f"{machine if dice.random() < 0.97 else number(dice)} {abs(dice.uniform(0, 9)):.1f}"
                for machine in range(machines)
            )
            for _ in range(count)
        ]
        text, read = f"# x\n{said} {machines}\n" + "\n".join(rows), problem_files.read_shop
    else:
        edges = [
            f"e {dice.randint(1, count) if dice.random() < 0.95 else number(dice)} {dice.randint(1, count)}"
            for _ in range(dice.randint(0, 5))
        ]
        text, read = f"c x\np edge {said} {len(edges)}\n" + "\n".join(edges), problem_files.read_links
    if dice.random() < 0.1:
        text = text.replace("\n", dice.choice(("\r", "\u2028", "\n\n", " ")))
    file = place / "instance.txt"
    file.write_bytes(text.encode(dice.choice(("utf-8",) * 9 + ("utf-16",)), "replace"))
    read(file)


KINDS = {written_graph: 2000, written_knowledge: 250, written_network: 250, written_instance: 600}
"""Kinds of files, and how many of each are tried."""
