"""The site: `make docs` builds it into build/site, with search that works offline."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

project = "floodline"
author = "the floodline developers"
copyright = "the floodline developers; Apache-2.0"  # noqa: A001 - Sphinx's own name

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["_build"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
myst_url_schemes = ["http", "https", "mailto"]

html_theme = "furo"
html_title = "floodline"
html_static_path: list[str] = []
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}
python_use_unqualified_type_names = True


def setup(app):  # noqa: D103 - Sphinx calls it
    app.connect("autodoc-process-docstring", _without_words_on_the_module)


def _without_words_on_the_module(app, what, name, obj, options, lines):  # noqa: ARG001
    """Modules are introduced by the pages."""
    if what == "module":
        lines.clear()
