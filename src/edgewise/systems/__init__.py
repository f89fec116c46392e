"""The systems that ship with edgewise: folders of one anatomy, each with one declaration, `SYSTEM`.

A system declares itself like anyone's plug-in. Nothing else imports it, so its folder can be deleted.
"""

from pkgutil import iter_modules

SYSTEMS = tuple(f"{__name__}.{found.name}" for found in iter_modules(__path__))
"""Modules that hold a `SYSTEM`, in the order in which lists show them."""
