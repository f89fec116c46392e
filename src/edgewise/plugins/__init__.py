"""The one door for extensions: what can be declared, where it is found, and what may be imported.

Names lead to declarations, and declarations to code by its address, which is imported when it is used. The
systems that ship with edgewise come through here like anyone's. Never imports torch.
"""

from edgewise.plugins.addresses import Address, import_file, load
from edgewise.plugins.catalogue import (
    algorithm,
    algorithms,
    environment,
    environments,
    listed,
    recipes,
)
from edgewise.plugins.declarations import AlgorithmEntry, Environment, System, Verb
from edgewise.plugins.finding import check_allowed, find
from edgewise.plugins.identity import CodeRecord, changed_code, record_code
from edgewise.plugins.registry import (
    address_of,
    name_of,
    references,
    register,
    registered,
    systems,
    use_plugin,
    use_project_plugins,
)
from edgewise.plugins.trust import (
    allow,
    allow_typed,
    project_plugins,
    require_allowed,
    require_cluster,
)

__all__ = [
    "Address",
    "AlgorithmEntry",
    "CodeRecord",
    "Environment",
    "System",
    "Verb",
    "address_of",
    "algorithm",
    "algorithms",
    "allow",
    "allow_typed",
    "changed_code",
    "check_allowed",
    "environment",
    "environments",
    "find",
    "import_file",
    "listed",
    "load",
    "name_of",
    "project_plugins",
    "recipes",
    "record_code",
    "references",
    "register",
    "registered",
    "require_allowed",
    "require_cluster",
    "systems",
    "use_plugin",
    "use_project_plugins",
]
