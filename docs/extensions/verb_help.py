"""A directive that shows the help text of a verb: ```{verb-help} train```, or of all verbs without a name.

The verbs of a system are `SYSTEM VERB`, as they are typed.
"""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from edgewise.cli.verbs import GENERIC
from edgewise.plugins import systems
from edgewise.terminal.parser import Parser

VERBS = GENERIC | {f"{system.name} {verb.name}": verb for system in systems() for verb in system.verbs}


class VerbHelp(Directive):
    """Show what `edgewise VERB --help` prints, for one verb or for each of them."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return one section per verb."""
        chosen = self.arguments or list(VERBS)
        return [_section(name) for name in chosen]


def _section(name: str) -> nodes.section:
    verb = VERBS[name]
    parser = Parser(name, verb.summary)
    verb.load().configure(parser)
    section = nodes.section(ids=[f"edgewise-{name.replace(' ', '-')}"])
    section += nodes.title(text=f"edgewise {name}")
    text = parser.format_help()
    section += nodes.literal_block(text, text, language="text")
    return section


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("verb-help", VerbHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
