"""Settings of the site, built by `make docs`; every warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

from edgewise import __version__  # noqa: E402

project = "edgewise"
author = "the edgewise authors"
copyright = "MIT licence"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docstring_tables",
    "verb_help",
    "outside_links",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "extensions"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"show-inheritance": False}
python_use_unqualified_type_names = True
napoleon_use_rtype = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
add_module_names = False
default_role = "code"

html_theme = "furo"
html_title = f"edgewise {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
