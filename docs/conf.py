"""Sphinx configuration. Build with `make docs`; every warning is an error."""

import re
import tempfile
from pathlib import Path

from docutils import nodes
from sphinx.errors import SphinxError

from dalembert import __version__
from dalembert.compiler import kernels

kernels.ANNOUNCE_AFTER_SECONDS = 3600.0  # pages do not say how long compilation took

project = "dalembert"
copyright = "The dalembert authors"
author = "The dalembert authors"
release = version = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "**/.ipynb_checkpoints",
    "gallery/**.ipynb",
    "gallery/**.py",
    "gallery/**.md5",
    "jupyter_execute",
]
intersphinx_mapping: dict[str, tuple[str, None]] = {}  # the build needs no network

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 180
nb_merge_streams = True
nb_output_stderr = "remove"  # there, too

autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Check", "Placement", "Scalar", "Tree")}
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
python_display_short_literal_types = True
python_maximum_signature_line_length = 100
suppress_warnings = ["ref.python"]  # a name that a package passes on has two homes
default_role = "code"  # docstrings name arguments in single backquotes

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"demo\.py|__init__\.py",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "within_subsection_order": "ExampleTitleSortKey",
}

html_theme = "furo"
html_title = f"dalembert {version}"
html_static_path = ["_static"]
html_css_files = ["dalembert.css"]


def plain_docstring(app, what, name, obj, options, lines: list[str]) -> None:
    """Docstrings are plain text with code in single backquotes: tell reStructuredText so.

    Stars, bars and underscores are mathematics here (v x* I v, |x|, S_i), and what is indented is set as it
    stands. So is an example, which begins with `>>>` and ends at an empty line; the rows of the requirements
    before it lead to their table.
    """
    plain, literal, example = [], False, False
    for line in lines:
        example = bool(line) and (example or line.startswith(">>> "))
        indented = line.startswith(" ") and not in_list(plain)
        if indented and not literal and not example:
            plain += ["", "::", ""]
        elif literal and line and not indented:
            plain.append("")
        literal = not example and (indented or (literal and not line))
        plain.append(line if literal or example else escape(line))
    lines[:] = [*plain, ""]


def short_aliases(app, what, name, obj, options, signature, returned):
    """Type aliases by their names."""
    return tuple(
        text
        and re.sub(
            r"_Buffer \| .*?_NestedSequence\[complex \| bytes \| str\]",
            "ArrayLike",
            re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text),
        )
        for text in (signature, returned)
    )


def in_list(above: list[str]) -> bool:
    """Whether the lines above end in an item of a list."""
    for line in reversed(above):
        if not line:
            return False
        if not line.startswith(" "):
            return line.startswith(("- ", "* ", "\\* "))
    return False


def escape(line: str) -> str:
    """Single backquotes to literals; the other marks of reStructuredText to themselves."""
    if line.startswith((":", "..")):
        return line
    parts = line.replace("``", "`").split("`")
    return "".join(
        f"``{part}``" if position % 2 and part else re.sub(r"([*|_\\])", r"\\\1", part)
        for position, part in enumerate(parts)
    )


def last_lines_of_tracebacks(app, doctree: nodes.document) -> None:
    """Of an error that a page shows, what it says: the rest of a traceback is about the builder's machine."""
    for block in doctree.findall(nodes.literal_block):
        if "traceback" in block["classes"]:
            said = re.search(r"(?:.*\n)?(\w+Error: .*)", block.astext(), re.DOTALL)
            said = re.sub(r"\S*/ipykernel_\d+/\d+\.py", "notebook.py", said[1] if said else block.astext())
            block.children = [nodes.Text(said)]
            block.rawsource = said


def refuse_machine_paths(app, exception: Exception | None) -> None:
    """Pages that hold a path of the machine that built them are no pages."""
    if exception is not None:
        return
    folders = (Path(__file__).parents[1], Path.home(), Path(tempfile.gettempdir()))
    begins = [re.escape(f"{folder}/") for folder in folders if folder != folder.parent]
    private = re.compile(rf"(?<![\w.])(?:{'|'.join(begins)})|site-packages")
    for page in sorted(Path(app.outdir).rglob("*.html")):
        if found := private.search(page.read_text("utf-8")):
            raise SphinxError(f"{page.relative_to(app.outdir)} shows a path of this machine: {found[0]}")


def setup(app) -> None:
    app.connect("doctree-read", last_lines_of_tracebacks)
    app.connect("build-finished", refuse_machine_paths)
    app.connect("autodoc-process-docstring", plain_docstring)
    app.connect("autodoc-process-signature", short_aliases)
