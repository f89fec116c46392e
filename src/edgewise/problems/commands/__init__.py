"""Verbs of the problems: `edgewise problems VERB`."""
