"""`edgewise completion`: write a script with which a shell completes verbs, options and names."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping

from edgewise import plugins
from edgewise.cli.verbs import GENERIC
from edgewise.plugins import System, Verb
from edgewise.runs.zoo import zoo_names
from edgewise.terminal.console import Console
from edgewise.terminal.parser import Parser

Words = Mapping[str, str]
"""What may follow, and what it means."""

INSTALL = {
    "bash": 'eval "$(edgewise completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(edgewise completion zsh)"   # in ~/.zshrc',
    "fish": "edgewise completion fish > ~/.config/fish/completions/edgewise.fish",
}

BASH = """\
_edgewise() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local place="" words=""
  if (( COMP_CWORD > 1 )); then place="${{COMP_WORDS[1]}}"; fi
  case " {systems} " in
    *" $place "*) if (( COMP_CWORD > 2 )); then place="$place ${{COMP_WORDS[2]}}"; fi ;;
  esac
  case "$place $previous" in
{choices}
    *) case "$place" in
{words}
    esac ;;
  esac
  COMPREPLY=( $(compgen -W "$words" -- "$current") )
}}
complete -o default -F _edgewise edgewise
"""


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("shell", choices=sorted(INSTALL), help="the shell that reads the script")
    parser.examples(*INSTALL.values())


def run(options: Namespace, console: Console) -> int:
    """Write the script to stdout."""
    script = fish() if options.shell == "fish" else bash()
    if options.shell == "zsh":
        script = f"autoload -U +X compinit bashcompinit && compinit -u && bashcompinit\n{script}"
    console.show({"shell": options.shell, "script": script}, script)
    return 0


def bash() -> str:
    """Return the script for bash, which zsh reads too."""
    words, choices = [], []
    for place, parser, more in places():
        following = [*more, *(parser.options if parser is not None else ())]
        words.append(f'      "{place}") words="{" ".join(following)}" ;;')
        for name, action in parser.options.items() if parser is not None else ():
            if action.choices:
                values = " ".join(str(choice) for choice in action.choices)
                choices.append(f'    "{place} {name}") words="{values}" ;;')
    systems = " ".join(each.name for each in systems_with_verbs())
    return BASH.format(systems=systems, choices="\n".join(choices), words="\n".join(words))


def fish() -> str:
    """Return the script for fish."""
    lines = ["complete -c edgewise -f -n __fish_use_subcommand -l help -d 'show the verbs'"]
    for place, parser, more in places():
        seen = "".join(f"; and __fish_seen_subcommand_from {name}" for name in place.split())
        where = seen.removeprefix("; and ") or "__fish_use_subcommand"
        lines += [
            f"complete -c edgewise -n '{where}' -a {word} -d {_quoted(text)}" for word, text in more.items()
        ]
        for name, action in parser.options.items() if parser is not None else ():
            flag = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            values = f" -xa {_quoted(' '.join(map(str, action.choices)))}" if action.choices else ""
            lines.append(f"complete -c edgewise -n '{where}' {flag}{values} -d {_quoted(action.help or '')}")
    return "\n".join(lines) + "\n"


def places() -> Iterator[tuple[str, Parser | None, Words]]:
    """Yield what the user has typed, the parser of that verb, and names that may follow."""
    systems = systems_with_verbs()
    every: Words = {name: each.summary for name, each in GENERIC.items()}
    yield "", None, {**every, **{each.name: f"verbs of {each.name}" for each in systems}}
    trained = {name: kind for kind in ("recipe", "environment") for name in plugins.listed(kind)}
    names: Mapping[str, Words] = {
        "train": trained,
        "zoo": dict.fromkeys(zoo_names(), "policy"),
        "completion": dict.fromkeys(INSTALL, "shell"),
    }
    for name, verb in GENERIC.items():
        yield name, _parser(verb), names.get(name, {})
    for system in systems:
        yield system.name, None, {verb.name: verb.summary for verb in system.verbs}
        for verb in system.verbs:
            yield f"{system.name} {verb.name}", _parser(verb), {}


def systems_with_verbs() -> list[System]:
    """Return the systems of this installation that have verbs of their own."""
    found = plugins.listed("system").values()
    return [each for each in found if isinstance(each, System) and each.verbs]


def _parser(verb: Verb) -> Parser:
    parser = Parser(verb.name, verb.summary)
    verb.load().configure(parser)
    return parser


def _quoted(text: str) -> str:
    cleaned = text.replace("\\", "").replace("'", "\\'").replace("\n", " ")
    return f"'{cleaned}'"
