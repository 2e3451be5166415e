"""Settings of the site that `make docs` builds from docs/ and the root's pages with Sphinx.

The sources are the whole checkout and not docs/ alone, so that a relative link means the same on
the site as on a code host: `../SECURITY.md` a page, `../examples/hub_layers.py` that file, shown.
What Sphinx has no setting for is in `site_steps.py`, beside this file.
"""

import pathlib
import sys

_DOCS = pathlib.Path(__file__).resolve().parent
ROOT = _DOCS.parent
sys.path[:0] = [str(ROOT), str(_DOCS)]  # this checkout's `bert`, and site_steps

import bert  # noqa: E402

project = "BERT, alive"
author = "The maintainers of bert-alive"
project_copyright = "The maintainers of bert-alive. Apache-2.0"
version = release = bert.__version__

extensions = [
  "myst_parser",
  "sphinx.ext.autodoc",
  "sphinx.ext.napoleon",
  "sphinx.ext.viewcode",
  "docstring_steps",
  "site_steps",
]

# ---------------------------------------------------------------------------------------------
# Sources: the pages of docs/, those at the root, the notebooks, and the pages of tf1/.

root_doc = "docs/index"
_PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
include_patterns = [*_PAGES, "docs/**", "examples/*.ipynb", "tf1/README.md", "tf1/docs/**"]
# Sphinx follows links while it looks for sources, and would read .venv and output, too.
exclude_patterns = [
  path.name for path in ROOT.iterdir() if path.name not in {*_PAGES, "docs", "examples", "tf1"}
]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}  # site_steps makes one of the other

# Anchors of headings as code hosts make them, down to the sixth level.
myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence"]

# ---------------------------------------------------------------------------------------------
# The reference: docstrings are Google's form, in the order of the source.

default_role = "code"  # `x` in a docstring
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_numpy_docstring = False
# As text: an entry of ours may have several names, and some are described a second time as members.
napoleon_custom_sections = [("Attributes", "params_style")]

# ---------------------------------------------------------------------------------------------
# Every reference must lead somewhere (`make docs` makes an error of each warning).

nitpicky = True
# Types of other packages, whose pages are elsewhere, and of modules here that are not public. But
# a name alone, such as an error in Raises, must be on a page.
_OTHERS = (
  "bert|collections|dataclasses|keras|numpy|os|pathlib|random|tensorflow|tf|tokenizers|torch|"
  "transformers|typing"
)
nitpick_ignore_regex = [("py:.*", rf"({_OTHERS})\..*")]
suppress_warnings = ["myst.header"]  # a page may skip a level of headings

# ---------------------------------------------------------------------------------------------
# The looks. Furo asks no other host for fonts or scripts, so the site works from a folder.

html_theme = "furo"
html_title = f"BERT, alive {release}"
html_favicon = "pictures/icon.svg"  # from this folder
html_copy_source = False
html_show_sphinx = False
