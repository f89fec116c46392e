"""Building blocks of command-line verbs: console, parser, tables and help texts."""
