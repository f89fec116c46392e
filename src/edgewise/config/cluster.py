"""How the address of a Ray cluster is written. Imports nothing, since command lines are checked with it."""

import re

CLUSTER = re.compile(r"auto|[^\s:/]+:[0-9]+")
"""The address of a cluster: host:port, or auto for the one of this machine."""
