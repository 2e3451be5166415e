"""What the site needs beyond Sphinx's settings: contents from lists, notebooks, files as pages.

Pages stay plain Markdown that reads well on a code host, so none has a directive for what follows
from its text: an index is a page with lists of links, and a link to a program is a link.
"""

import html
import json
import os
import pathlib
import re
from collections.abc import Iterator

from docutils import nodes
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

_HEADING = re.compile(r"^## (.+)$")
# `- [Title](page.md) ...`, `1. [Title](page.md)`, `| [Title](page.md) | ... |`
_LISTED = re.compile(r"^(?:[-*]|\d+\.|\|) *\[([^\]]+)\]\(([^)\s#]+\.(?:md|ipynb))\)")


def setup(app: Sphinx) -> dict[str, bool]:
  """Connects the steps to Sphinx's events."""
  app.connect("source-read", _notebook_to_markdown)
  app.connect("source-read", _lists_to_contents)
  # Before Sphinx (500) takes links to files for downloads.
  app.connect("doctree-read", _link_files, priority=400)
  app.connect("env-purge-doc", _forget_files)
  app.connect("env-merge-info", _merge_files)
  app.connect("missing-reference", _by_last_part)
  app.connect("html-collect-pages", _file_pages)
  app.connect("html-page-context", _complete_for_keyboards, priority=900)  # after Furo (500)
  app.connect("build-finished", _write_entrance)
  return {"parallel_read_safe": True, "parallel_write_safe": True}


# ---------------------------------------------------------------------------------------------
# The table of contents


def _lists_to_contents(app: Sphinx, docname: str, source: list[str]) -> None:
  """Adds hidden tables of contents to a page named `index`: what its lists link to.

  The root's index may list every page, another one those of its own folder and below: so a page
  has one place in the contents, however often it is linked to.
  """
  is_root = docname == app.config.root_doc
  if (is_root or docname.endswith("/index")) and "{toctree}" not in source[0]:
    parts = _listed_pages(source[0], everywhere=is_root)
    source[0] += "".join(_toctree(caption, pages) for caption, pages in parts.items() if pages)


def _listed_pages(text: str, everywhere: bool) -> dict[str, list[tuple[str, str]]]:
  """`{heading: [(title, path), ...]}` of an index; a page counts where it is listed first.

  Example:
    >>> _listed_pages("## Start\\n- [One](one.md): why\\n- [Up](../up.md)", everywhere=False)
    {'': [], 'Start': [('One', 'one.md')]}
  """
  caption = ""
  parts: dict[str, list[tuple[str, str]]] = {"": []}
  seen = set()
  for line in text.splitlines():
    if heading := _HEADING.match(line):
      caption = heading[1]
      parts[caption] = []
    elif (found := _LISTED.match(line)) and (everywhere or not found[2].startswith("..")):
      if found[2] not in seen:
        parts[caption].append((found[1], found[2]))
      seen.add(found[2])
  return parts


def _toctree(caption: str, pages: list[tuple[str, str]]) -> str:
  lines = [f":caption: {caption}"] if caption else []
  lines += ["", *(f"{title} <{path}>" for title, path in pages)]
  return "\n\n:::{toctree}\n:hidden:\n" + "\n".join(lines) + "\n:::\n"


# ---------------------------------------------------------------------------------------------
# Notebooks. Those here have no outputs, so a page of one is its text and its code; nbsphinx and
# myst-nb would bring pandoc or a dozen packages for the same page.


def _notebook_to_markdown(app: Sphinx, docname: str, source: list[str]) -> None:
  """Makes a Markdown page of a notebook."""
  if app.env.doc2path(docname).suffix == ".ipynb":
    source[0] = "\n\n".join(_cell(cell) for cell in json.loads(source[0])["cells"])


def _cell(cell: dict) -> str:
  text = "".join(cell["source"])
  if cell["cell_type"] == "markdown":
    return text
  is_command = text.startswith("!") and "\n\n" not in text
  return f"````{'bash' if is_command else 'ipython3'}\n{text}\n````"


# ---------------------------------------------------------------------------------------------
# Files beside the pages. A link to one leads to a page of the site with its text: that is the
# version which the page describes, also offline, and whatever address the project has.


def _files(app: Sphinx) -> dict[str, set[str]]:
  """`{docname: paths from the root that it links to}`, kept in the environment."""
  if not hasattr(app.env, "linked_files"):
    app.env.linked_files = {}
  return app.env.linked_files


def _forget_files(app: Sphinx, env, docname: str) -> None:
  del env
  _files(app).pop(docname, None)


def _merge_files(app: Sphinx, env, docnames: list[str], other) -> None:
  del env
  for docname in docnames:
    if docname in getattr(other, "linked_files", {}):
      _files(app)[docname] = other.linked_files[docname]


def _link_files(app: Sphinx, doctree: nodes.document) -> None:
  """Leads links to files and folders of the checkout to their pages."""
  docname = app.env.docname
  for node in list(doctree.findall(lambda n: _is_link(n))):
    name = app.env.relfn2path(node["reftarget"], docname)[0]
    path = pathlib.Path(app.srcdir, name)
    if not path.exists():
      continue  # MyST says so
    _files(app).setdefault(docname, set()).add(name)
    uri = app.builder.get_relative_uri(docname, _page_name(app, name))
    node.replace_self(nodes.reference("", "", *node.children, refuri=uri, internal=True))


def _is_link(node: nodes.Node) -> bool:
  is_file = isinstance(node, addnodes.download_reference)
  is_folder = isinstance(node, addnodes.pending_xref) and node.get("refdomain") is None
  return (is_file or is_folder) and node.get("reftype") == "myst"


def _page_name(app: Sphinx, name: str) -> str:
  return f"{name}/index" if pathlib.Path(app.srcdir, name).is_dir() else name


def _file_pages(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
  """Makes the pages of all files that are linked to, and of those that a linked folder holds."""
  names = set().union(*_files(app).values())
  folders = {name for name in names if pathlib.Path(app.srcdir, name).is_dir()}
  for name in folders:
    names |= {f"{name}/{path.name}" for path in _content(app, name)}
  for name in sorted(names):
    body = _folder_body(app, name) if name in folders else _file_body(app, name)
    context = {"title": name, "body": f"<h1>{html.escape(name)}</h1>\n{body}"}
    yield _page_name(app, name), context, "page.html"


def _content(app: Sphinx, name: str) -> list[pathlib.Path]:
  found = pathlib.Path(app.srcdir, name).iterdir()
  return sorted(path for path in found if path.is_file() and path.suffix != ".ipynb")


def _folder_body(app: Sphinx, name: str) -> str:
  lines = [f'<li><a href="{path.name}.html">{path.name}</a></li>' for path in _content(app, name)]
  return f"<ul>\n{os.linesep.join(lines)}\n</ul>"


def _file_body(app: Sphinx, name: str) -> str:
  text = pathlib.Path(app.srcdir, name).read_text(encoding="utf-8")
  try:
    language = get_lexer_for_filename(name).aliases[0]
  except ClassNotFound:
    language = "text"
  return app.builder.highlighter.highlight_block(text, language, linenos=False)


# ---------------------------------------------------------------------------------------------
# Names in the reference


def _by_last_part(app: Sphinx, env, node, content) -> nodes.reference | None:
  """Finds what a docstring or a signature calls by another path: where only one name ends so.

  `optimization.TrainOp` is `bert.optimization.TrainOp`, `CheckpointError` lies deep in a package.
  """
  if node.get("refdomain") != "py":
    return None
  last = node["reftarget"].rpartition(".")[2]
  objects = env.domains["py"].objects
  found = [name for name in objects if name.rpartition(".")[2] == last and name[0] != "_"]
  if len(found) != 1 or objects[found[0]].objtype not in ("class", "exception", "function"):
    return None
  entry = objects[found[0]]
  return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, found[0])


# ---------------------------------------------------------------------------------------------
# The site's frame


def _complete_for_keyboards(app: Sphinx, pagename: str, template: str, context: dict, doc) -> None:
  """Adds what people without a mouse need: levels of the sidebar's headings, scrolling by keys."""
  del app, pagename, template, doc
  tree = context.get("furo_navigation_tree", "")
  context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
  body = context.get("body", "").replace("<pre>", '<pre tabindex="0">')
  context["body"] = body.replace(
    '<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'
  )


_ENTRANCE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">{title}</a></html>
"""


def _write_entrance(app: Sphinx, error: Exception | None) -> None:
  """Writes the site's index.html, which leads to the first page: that one lies in docs/."""
  if error is None:
    target = app.builder.get_target_uri(app.config.root_doc)
    text = _ENTRANCE.format(title=html.escape(app.config.project), target=target)
    pathlib.Path(app.outdir, "index.html").write_text(text, encoding="utf-8")
