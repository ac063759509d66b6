"""What the documentation shows is true: its code runs and its links lead somewhere.

Every public function says which equation it solves and which requirements it meets, and every public name has
an example that runs.
"""

import csv
import doctest
import importlib
import inspect
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dalembert as da
from dalembert.algorithms.declaration import DECLARED
from dalembert.api import declared

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts and "gallery" not in page.parts]


def blocks(page: Path) -> str:
    """The Python blocks of a page, with blank lines between them so that line numbers stay the page's."""
    lines, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = line.startswith("```")
        inside = line == "```python" if fence else inside
        lines.append(line if inside and not fence else "")
    return "\n".join(lines)


def test_the_code_of_the_readme_runs_and_gives_what_it_says() -> None:
    names: dict[str, object] = {}
    page = ROOT / "README.md"
    exec(compile(blocks(page), str(page), "exec"), names)
    np.testing.assert_allclose(names["tau"], 0.0, atol=1e-12)
    assert np.shape(names["M"]) == (4096, 2, 2)


CELL = re.compile(r"```\{code-cell\}[^\n]*\n(.*?)```", re.S)
RAISES = ":tags: [raises-exception]"
NOTEBOOKS = [page for page in PAGES if CELL.search(page.read_text(encoding="utf-8"))]


def run_cells(page: Path) -> None:
    """Run the cells of a page in order; those tagged so must raise an error."""
    names: dict[str, object] = {}
    for cell in CELL.findall(page.read_text(encoding="utf-8")):
        code = re.sub(r"^(:tags:.*|%timeit )", "", cell, flags=re.M)
        if RAISES in cell:
            with pytest.raises(da.errors.DalembertError):
                exec(compile(code, str(page), "exec"), names)
        else:
            exec(compile(code, str(page), "exec"), names)


@pytest.mark.filterwarnings("error::DeprecationWarning")
@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_cells_of_a_page_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are written as notebooks; `make docs` runs the same cells in their folder.

    IPython, which shows their pictures there, need not be installed here.
    """
    shown: list[object] = []
    pictures = SimpleNamespace(
        Image=lambda file: Path(file).stat().st_size, display=lambda item, **_: shown.append(item)
    )
    if "IPython" in page.read_text(encoding="utf-8"):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=pictures))
        monkeypatch.setitem(sys.modules, "IPython.display", pictures)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(page.parent)
    try:
        run_cells(page)
    finally:
        DECLARED.pop("gravitational_power", None)
        vars(declared).pop("gravitational_power", None)
    assert all(shown)


def test_the_guide_to_a_new_algorithm_agrees_with_its_oracle(capsys: pytest.CaptureFixture[str]) -> None:
    """The algorithm gives what its oracle does, and one declaration makes it a public function."""
    try:
        run_cells(ROOT / "docs" / "guides" / "add-an-algorithm.md")
    finally:
        DECLARED.pop("gravitational_power", None)
        vars(declared).pop("gravitational_power", None)
    on_floats, compiled, oracle, batch = capsys.readouterr().out.splitlines()
    numbers = [float(re.findall(r"-?\d[\d.e-]*", line)[0]) for line in (on_floats, compiled, oracle, batch)]
    np.testing.assert_allclose(numbers, numbers[0], rtol=1e-6)


def test_the_first_model_of_the_readme_has_ten_lines() -> None:
    first = re.search(
        r"## A first model in ten lines\n\n```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S
    )
    assert first is not None
    code = [line for line in first[1].splitlines() if line.strip()]
    assert len([line for line in code if not line.startswith("import")]) <= 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


def test_every_page_is_in_a_table_of_contents() -> None:
    listed = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if "{toctree}" in page.read_text())
    docs = ROOT / "docs"
    for page in PAGES:
        if docs in page.parents and page.name != "index.md":
            assert re.search(rf"^(\S+/)?{re.escape(page.stem)}$", listed, re.M), (
                f"{page.name} is in no toctree"
            )


def test_every_public_name_is_in_the_reference() -> None:
    pages = (ROOT / "docs" / "reference").glob("*.md")
    reference = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    public = [name for name in da.__all__ if name != "__version__"]
    assert [n for n in public if not re.search(rf"auto\w+:: {n}$|da\.{n}\b", reference, re.M)] == []
    inside = [n for n in PUBLIC if "." in n]
    modules = set(re.findall(r"automodule:: dalembert\.(?:api\.|model\.)?(\w+)", reference, re.M))
    listed = set(re.findall(r"auto(?:function|class):: (?:[\w.]*\.)?(\w+)$", reference, re.M))
    assert [n for n in inside if n.split(".")[0] not in modules and n.split(".")[1] not in listed] == []


PACKAGES = (
    *("control", "symbolic", "analysis", "motion", "simulation", "contact", "viewer", "envs"),
    *("dynamics", "kinematics", "constraints", "geometry", "cartesian", "floating_base", "identification"),
    *("joints", "shapes"),
)
NO_EQUATION = {
    "contact.pairs_of": "chooses among names",
    "compile": "turns a function into machine code",
    "envs.make": "makes copies of a task",
    "envs.names": "lists names",
    "convert_state": "renames and reorders coordinates",
    "get_num_threads": "reads a setting",
    "load": "reads a file",
    "load_motion": "reads a file",
    "save": "writes a file",
    "set_num_threads": "changes a setting",
    "viewer.contact_sheet": "draws a picture",
    "viewer.record": "writes a page",
    "viewer.view": "shows a page",
}
"""Public functions that compute no formula, and what they do instead."""
NO_ROW = {
    "control.actuator_forces": "actuators are no matter of the documents",
    "dynamics.fluid_forces": "fluids are no matter of the documents",
    "envs.make": "learning is no matter of the documents",
    "envs.names": "learning is no matter of the documents",
    "kinematics.spring_lengths": "tendons are no matter of the documents",
    "get_num_threads": "threads are no matter of the documents",
    "set_num_threads": "threads are no matter of the documents",
    "stand": "poses are no matter of the documents",
    "viewer.contact_sheet": "pictures are no matter of the documents",
    "viewer.record": "pictures are no matter of the documents",
    "viewer.view": "pictures are no matter of the documents",
}
"""Public functions that meet no requirement of the documents, and why they are there."""


def public_names() -> dict[str, object]:
    """Public functions and classes by their names: those of `dalembert`, then those of its packages.

    Of the textbook, the functions that show an example; the others are called with `method=`.
    """
    found = {name: getattr(da, name) for name in da.__all__}
    for package in PACKAGES:
        module = getattr(da, package)
        for name in getattr(module, "__all__", ()):
            if name not in da.__all__ or getattr(da, name) is not getattr(module, name):
                found[f"{package}.{name}"] = getattr(module, name)
    for name in da.textbook.__all__:
        value = getattr(da.textbook, name)
        if inspect.isclass(value) or ">>> " in (getattr(value, "__doc__", None) or ""):
            found[f"textbook.{name}"] = value
    return {
        name: value for name, value in found.items() if inspect.isroutine(value) or inspect.isclass(value)
    }


PUBLIC = public_names()
FUNCTIONS = [name for name, value in PUBLIC.items() if inspect.isroutine(value)]
RECORDS = [name for name in PUBLIC if "." in name and name not in FUNCTIONS]
"""What functions of the packages return: the examples of those functions show them."""
ROWS = {line.split(",")[0] for line in (ROOT / "requirements" / "rows.csv").read_text().splitlines()[1:]}


def documentation(name: str) -> str:
    """The docstring of a public name itself, not one that it inherits."""
    return inspect.cleandoc(getattr(PUBLIC[name], "__doc__", None) or "")


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in RECORDS])
def test_every_public_name_has_an_example(name: str) -> None:
    assert doctest.DocTestParser().get_examples(documentation(name)), (
        f"{name} has no example in its docstring"
    )


SOURCES = ROOT / "src" / "dalembert"
WITH_EXAMPLES = [
    path for path in sorted(SOURCES.rglob("*.py")) if "\n    >>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_examples_run_and_give_what_they_show(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those of every docstring; `da` and `np` are imported, files go to an empty folder."""
    parts = path.relative_to(SOURCES.parent).with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    monkeypatch.chdir(tmp_path)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for example in doctest.DocTestFinder().find(module, globs={"da": da, "np": np}):
        runner.run(example, out=report.append)
    assert runner.tries
    assert not report, "".join(report)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_say_which_equation_they_solve(name: str) -> None:
    """Before the example, the docstring of a public function holds an equation."""
    text = documentation(name).split(">>>")[0]
    assert name in NO_EQUATION or re.search(r"\S = \S|[\w)]\^[\w(-]", text), (
        f"{name}: no equation in the docstring"
    )


def test_functions_meet_requirements() -> None:
    """requirements/functions.csv names the rows of requirements/rows.csv that each public function meets."""
    with (ROOT / "requirements" / "functions.csv").open() as file:
        met = {item["function"]: item["rows"].split() for item in csv.DictReader(file)}
    assert set(met) == set(FUNCTIONS) - set(NO_ROW)
    assert not [row for rows in met.values() for row in rows if row not in ROWS]
    assert all(met.values())


def test_docstrings_do_not_name_requirements() -> None:
    """Identifiers of requirements belong to tests and tables, not to what users read in `help`."""
    named = {name for name in PUBLIC if re.search(r"^Rows: ", documentation(name), re.M)}
    assert not named


def test_exceptions_of_the_rules_exist() -> None:
    assert {*NO_EQUATION, *NO_ROW} <= set(FUNCTIONS)
