"""How the documentation becomes a site: `make docs` (docs/decisions/0018-docs-by-sphinx.md).

The source folder is the repository itself, so that a relative link means the same here and to
a person who reads the Markdown. Only the files that `include_patterns` names become pages; a
link to any other file of the repository puts a copy of that file beside the site.
"""

from __future__ import annotations

import sys
from pathlib import Path

import submerge

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "submerge"
author = "The authors of submerge"
version = release = submerge.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "plain_docstrings",
    "marked",
    "folders",
    "offline",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "benchmarks/*.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = ["docs/_*", ".venv*", ".git", ".*_cache", "build", "dist"]

# A heading's anchor is the one that its Markdown has elsewhere.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

# One backtick in a docstring is a name: a link where that name is documented.
default_role = "py:obj"
add_module_names = False
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature would say again what the parameters' table says
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False
napoleon_custom_sections = [("Attributes", "params_style")]

html_theme = "furo"
html_title = "submerge"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_additional_pages = {"index": "to_docs.html"}
templates_path = ["_templates"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6377", "color-brand-content": "#0b6377"},
    "dark_css_variables": {"color-brand-primary": "#5cc8de", "color-brand-content": "#5cc8de"},
    "navigation_with_keys": True,
}
highlight_language = "none"  # a block without a language is what a terminal shows
pygments_style = "friendly"
pygments_dark_style = "native"
