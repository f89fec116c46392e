"""A directive that shows the help text of a verb: ```{verb-help} train```, or of all verbs without a name."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from edgewise.cli.verbs import verbs
from edgewise.terminal.parser import Parser


class VerbHelp(Directive):
    """Show what `edgewise VERB --help` prints, for one verb or for each of them."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return one section per verb."""
        chosen = self.arguments or list(verbs())
        return [_section(name) for name in chosen]


def _section(name: str) -> nodes.section:
    verb = verbs()[name]
    parser = Parser(name, verb.summary)
    verb.load().configure(parser)
    section = nodes.section(ids=[f"edgewise-{name}"])
    section += nodes.title(text=f"edgewise {name}")
    text = parser.format_help()
    section += nodes.literal_block(text, text, language="text")
    return section


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("verb-help", VerbHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
