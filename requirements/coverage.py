"""Which tests prove which requirement: `python requirements/coverage.py`.

`rows.csv` lists the requirements. A test function proves a row by naming it in its docstring; a parametrised
test is one test, and a test that is skipped, may be skipped or is expected to fail proves nothing. The script
prints the table, writes `docs/requirements.md`, and exits with 1 where a delivered row has no test, a test
names a row that does not exist, or the page was out of date.
"""

from __future__ import annotations

import ast
import csv
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "requirements.md"
DOCUMENTS = {
    "RBDA": "Featherstone, *Rigid Body Dynamics Algorithms*",
    "LJ": "Liu and Jain, a tutorial on multibody dynamics",
    "ANIM": "a lecture on animation by dynamics",
    "GR": "Guenter and Rose, derivatives of inverse dynamics",
    "TOD": "Todorov, lecture on multi-joint dynamics",
}
ROW_ID = re.compile(rf"\b(?:{'|'.join(DOCUMENTS)})-[A-Z0-9]+(?:[.-][A-Z0-9]+)*")
HEADING = """\
# Requirements and their tests

dalembert implements five documents. They were read into {rows} requirements, and a requirement is met when a
test says so: these are the tests. This page is written by `make coverage-of-requirements`, which fails when a
delivered row loses its test.

Milestones: {milestones}.\
"""
UNSURE_MARKS = ("skip", "skipif", "xfail")


@dataclass(frozen=True)
class Row:
    """A requirement: its name, the milestone it belongs to, whether it is delivered, and what it asks for."""

    name: str
    milestone: str
    delivered: bool
    title: str


@dataclass(frozen=True)
class Test:
    """A test function that always runs, and the rows it names."""

    path: str
    name: str
    rows: tuple[str, ...]


def read_rows(path: Path = ROOT / "requirements" / "rows.csv") -> list[Row]:
    """The requirements, in the order of the documents."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(row["row"], row["milestone"], row["status"] == "delivered", row["title"])
            for row in csv.DictReader(file)
        ]


def read_tests(folder: Path = ROOT / "tests") -> list[Test]:
    """All test functions under a folder that name a row, by file and line."""
    tests = []
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        if may_be_skipped(tree):
            continue
        for name, function in test_functions(tree):
            rows = tuple(dict.fromkeys(ROW_ID.findall(ast.get_docstring(function) or "")))
            if rows:
                tests.append(Test(path.relative_to(folder.parent).as_posix(), name, rows))
    return tests


def test_functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The test functions of a module and of its test classes, without those that may not run."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test") and not has_mark(node):
            members = [(f"{node.name}.", member) for member in node.body]
        else:
            members = [("", node)]
        for prefix, member in members:
            if not isinstance(member, ast.FunctionDef) or not member.name.startswith("test"):
                continue
            if not has_mark(member) and not any(calls_skip(line) for line in member.body):
                yield prefix + member.name, member


def has_mark(node: ast.ClassDef | ast.FunctionDef) -> bool:
    """Whether a decorator skips the test or expects it to fail; its arguments may mark parameters."""
    marks = [item.func if isinstance(item, ast.Call) else item for item in node.decorator_list]
    return any(part in UNSURE_MARKS for mark in marks for part in names_in(mark))


def may_be_skipped(tree: ast.Module) -> bool:
    """Whether a line of the module itself can skip all of it: `pytestmark`, `pytest.skip`, `importorskip`."""
    for node in tree.body:
        marks = isinstance(node, ast.Assign) and "pytestmark" in names_in(node)
        if (marks and set(UNSURE_MARKS) & set(names_in(node))) or calls_skip(node):
            return True
    return False


def calls_skip(statement: ast.stmt) -> bool:
    """Whether a statement outside any branch calls `pytest.skip`, `pytest.xfail` or `pytest.importorskip`."""
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    return isinstance(value, ast.Call) and bool({"skip", "xfail", "importorskip"} & set(names_in(value.func)))


def names_in(node: ast.AST) -> Iterator[str]:
    """All names and attributes in a piece of code."""
    for part in ast.walk(node):
        if isinstance(part, (ast.Name, ast.Attribute)):
            yield part.id if isinstance(part, ast.Name) else part.attr


def proofs(rows: Iterable[Row], tests: Iterable[Test]) -> dict[str, list[Test]]:
    """The tests of each row."""
    found: dict[str, list[Test]] = {row.name: [] for row in rows}
    for test in tests:
        for name in test.rows:
            found.setdefault(name, []).append(test)
    return found


def problems(rows: list[Row], tests: list[Test]) -> list[str]:
    """What is wrong, a line each: delivered rows without a test, tests of rows that do not exist."""
    known, found = {row.name for row in rows}, proofs(rows, tests)
    lost = [
        f"{row.name} is delivered and no test names it"
        for row in rows
        if row.delivered and not found[row.name]
    ]
    odd = [f"{test.path}::{test.name} names {name}, which rows.csv does not list"
           for name in found if name not in known for test in found[name]]  # fmt: skip
    return lost + odd


def report(rows: list[Row], tests: list[Test]) -> str:
    """The table as text: each row, its milestone, and the number and names of its tests."""
    found, lines = proofs(rows, tests), []
    for row in rows:
        mark = len(found[row.name]) or ("NONE" if row.delivered else "later")
        lines.append(f"{row.name:24} {row.milestone:12} {mark:>5}  {row.title}")
        lines += [f"{'':44} {test.path}::{test.name}" for test in found[row.name]]
    delivered = [row for row in rows if row.delivered]
    proven = sum(bool(found[row.name]) for row in delivered)
    lines.append(f"{len(rows)} rows, {len(delivered)} delivered, {proven} of these proven by tests")
    return "\n".join(lines)


def page(rows: list[Row], tests: list[Test]) -> str:
    """The page of the documentation."""
    found = proofs(rows, tests)
    counts = {
        name: sum(row.milestone == name for row in rows) for name in dict.fromkeys(r.milestone for r in rows)
    }
    milestones = ", ".join(f"{name} ({count} rows)" for name, count in counts.items())
    lines = [HEADING.format(rows=len(rows), milestones=milestones)]
    for prefix, document in DOCUMENTS.items():
        lines += ["", f"## {prefix}: {document}", "", "| row | requirement | tests |", "|---|---|---|"]
        for row in rows:
            if row.name.startswith(prefix + "-"):
                text = "<br>".join(by_file(found[row.name])) or f"*{row.milestone}, ahead*"
                lines.append(f"| {row.name} | {row.title} | {text} |")
    return "\n".join(lines) + "\n"


def by_file(tests: list[Test]) -> Iterator[str]:
    """The names of tests, each file before its own."""
    for path in dict.fromkeys(test.path for test in tests):
        yield path.removeprefix("tests/")
        yield from (f"`{test.name}`" for test in tests if test.path == path)


def main() -> int:
    rows, tests = read_rows(), read_tests()
    found, text = problems(rows, tests), page(rows, tests)
    sys.stdout.write(report(rows, tests) + "\n")
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        PAGE.write_text(text, encoding="utf-8")
        found.append(f"{PAGE.relative_to(ROOT)} was out of date and is written anew: commit it")
    sys.stderr.write("".join(f"error: {line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
