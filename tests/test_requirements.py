"""Every delivered requirement has a test, and the page that says so is up to date."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


def load_coverage() -> ModuleType:
    """The script, which is no part of the package."""
    spec = importlib.util.spec_from_file_location(
        "requirements_coverage", ROOT / "requirements" / "coverage.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


coverage = load_coverage()
read_tests = functools.cache(coverage.read_tests)
OPEN, PROVEN = "RBDA-2.6-SCALAR", "RBDA-2.4-ORDER"


def test_every_delivered_row_is_proven_by_a_test_and_every_named_row_exists() -> None:
    assert coverage.problems(coverage.read_rows(), read_tests()) == []


def test_the_page_of_the_documentation_is_up_to_date() -> None:
    written = coverage.PAGE.read_text(encoding="utf-8")
    assert written == coverage.page(coverage.read_rows(), read_tests()), (
        "run `make coverage-of-requirements` and commit docs/requirements.md"
    )


def test_the_list_holds_each_row_once_with_its_milestone() -> None:
    rows = coverage.read_rows()
    assert len({row.name for row in rows}) == len(rows) == 265
    assert Counter(row.milestone for row in rows) == {
        "foundation": 116,
        "catalogue": 111,
        "derivatives": 14,
        "simulation": 24,
    }
    assert all(coverage.ROW_ID.fullmatch(row.name) and row.title for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of tests that name rows in every way that counts, and in every way that does not."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_some.py").write_text(f'''"""{OPEN} of a module does not count."""
import pytest

@pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.skip)])
def test_counts(x):
    """{PROVEN}."""

class TestGroup:
    """{OPEN} of a class does not count."""
    def test_counts_too(self):
        """A law, {PROVEN}; {PROVEN}."""

    @pytest.mark.xfail(reason="wrong")
    def test_fails(self):
        """{OPEN}"""

@pytest.mark.skip
def test_skipped():
    """{OPEN}"""

@pytest.mark.skipif(True, reason="elsewhere")
def test_sometimes_skipped():
    """{OPEN}"""

def test_skips_itself():
    """{OPEN}"""
    pytest.skip("always")

def test_in_a_comment():
    # {OPEN}
    assert True

def not_a_test():
    """{OPEN}"""
''')
    (tests / "test_other.py").write_text(
        f'import pytest\npin = pytest.importorskip("pin")\ndef test_it():\n    """{OPEN}"""\n'
    )
    return tests


def test_only_tests_that_always_run_and_name_a_row_in_their_docstring_count(folder: Path) -> None:
    found = coverage.read_tests(folder)
    assert [(test.path, test.name, test.rows) for test in found] == [
        ("tests/test_some.py", "test_counts", (PROVEN,)),
        ("tests/test_some.py", "TestGroup.test_counts_too", (PROVEN,)),
    ]


def test_a_delivered_row_without_test_and_an_unknown_row_are_named(folder: Path) -> None:
    (folder / "test_wrong.py").write_text(f'def test_typo():\n    """{PROVEN}ED"""\n')
    rows = [
        coverage.Row(PROVEN, "foundation", True, "has tests"),
        coverage.Row(OPEN, "foundation", True, "lost its test"),
        coverage.Row("GR-BASE", "derivatives", False, "is ahead"),
    ]
    assert coverage.problems(rows, coverage.read_tests(folder)) == [
        f"{OPEN} is delivered and no test names it",
        f"tests/test_wrong.py::test_typo names {PROVEN}ED, which rows.csv does not list",
    ]


def test_the_script_writes_the_page_and_fails_until_it_was_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "requirements.md"
    monkeypatch.setattr(coverage, "PAGE", page)
    monkeypatch.setattr(coverage, "ROOT", tmp_path)
    assert coverage.main() == 1
    assert "requirements.md was out of date" in capsys.readouterr().err
    assert coverage.main() == 0
    assert "| RBDA-6.2-CRBA |" in page.read_text(encoding="utf-8")


PUBLISHED = {
    "RBDA-6.5-EXPAND": [0, 1, 2, 3, 1, 4, 4, 5],
    "RBDA-8.10-MOBILITY": [3, 5, 2, 1],
    "RBDA-8.10-VARIABLE": [4, 2, 3],
    "RBDA-9.1-LAMBDA": [-1, -1, 0, 1, 2, 3, 4],
    "RBDA-9.6-GEARCOST": [44, 33],
    "RBDA-10.1-FARFRAME": [111.0, -1.0, 1.0],
    "RBDA-10.2-SENSITIVITY": [126.493676, 97.466324, 69.976228, 43.799848, 21.937181, 6.164686],
}
"""Numbers that the documents print, in a row as they stand there; bodies are numbered from 0 here."""
FORMULAS = ("RBDA-7.1-BOX", "RBDA-8.11-WORKED", "RBDA-8.12-EX", "RBDA-9.6-GEARS", "TOD-TWOLINK")
"""Worked examples that the documents give as formulas."""


def sequences(path: str, name: str) -> list[list[float]]:
    """The tuples and lists of numbers that a test function holds."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    function = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name)
    found = []
    for node in ast.walk(function):
        if isinstance(node, (ast.List, ast.Tuple)):
            with contextlib.suppress(ValueError, TypeError):
                found.append([float(x) for x in ast.literal_eval(node)])
    return found


@pytest.mark.parametrize("row", PUBLISHED)
def test_numbers_that_the_documents_print_stand_in_a_test(row: str) -> None:
    tests = [test for test in read_tests() if row in test.rows]
    held = [numbers for test in tests for numbers in sequences(test.path, test.name.split(".")[-1])]
    assert [float(x) for x in PUBLISHED[row]] in held


@pytest.mark.parametrize("row", FORMULAS)
def test_worked_examples_of_the_documents_have_a_test(row: str) -> None:
    assert any(row in test.rows for test in read_tests())
