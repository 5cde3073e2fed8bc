"""Configuration of the documentation: Sphinx with MyST, from the Markdown files of the whole tree.

Build it with `make docs`. The source folder is the root of the repository, so that a link between two Markdown files
works on GitHub and on the site alike. Formulas are TeX between dollars; `mathml` sets them without scripts or network.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from cumulant.cli.version import version_stamp

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "extensions"))

# Trees of documents live until the end of a build; looking for garbage among them took a quarter of its time.
gc.set_threshold(100_000, 50, 100)

project = "cumulant"
release = version = version_stamp()  # with the commit while it is unreleased
author = "the cumulant developers"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "mathml",
    "page_map",
    "reference_pages",
    "build_cache",
]

root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "docs/**.ipynb",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "proofs/README.md",
]
exclude_patterns = [
    "docs/README.md",  # the list of pages for readers on GitHub; the sidebar is that list on the site
    ".*",  # folders that hold no page; a search through the environments takes longer than through the pages
    "build",
    "src",
    "tests",
]

nb_execution_mode = "off"  # notebooks are stored with their outputs; tests/docs/test_notebooks.py runs them
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "deflist", "fieldlist"]
myst_heading_anchors = 4
suppress_warnings = [
    "myst.header",  # pages of proofs go from level 1 to level 3 where a proof has no parts
    "misc.highlighting_failure",  # questions to the page are shown as one line each, which is not a whole HTTP request
]

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # signatures are long enough; the text says what is accepted
autodoc_use_type_comments = False  # there are none, and looking for them parses the source of every method
add_module_names = False
python_maximum_signature_line_length = 88
nitpicky = False

html_theme = "furo"
html_title = f"cumulant {release.replace('+g', ' at ')}"
html_static_path = ["static"]
html_css_files = ["cumulant.css"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True, "sidebar_hide_name": False}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
pygments_style = "friendly"
pygments_dark_style = "monokai"
