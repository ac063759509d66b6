"""The files around the code agree: the quick tier, versions, hooks and the workflow of public CI."""

from __future__ import annotations

import ast
import pkgutil
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import dalembert as da

ROOT = Path(__file__).resolve().parent.parent
QUICK = (ROOT / "tests" / "quick.txt").read_text(encoding="utf-8").splitlines()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = (
    *("spatial", "model", "algorithms", "tracing", "codegen", "contact", "simulation", "control", "motion"),
    *("formats", "viewer", "test_api", "test_compile", "test_cli", "test_documentation", "test_public_api"),
)
"""The beginnings of paths below `tests` of which the quick tier has some."""


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("line", QUICK)
def test_lines_of_the_quick_tier_name_tests(line: str) -> None:
    """pytest takes each line for an argument, so that a blank line or a comment would be one too."""
    path, _, function = line.partition("::")
    assert (ROOT / path).exists(), f"{path} is in tests/quick.txt and does not exist"
    if function:
        defined = {node.name for node in ast.parse(text_of(path)).body if isinstance(node, ast.FunctionDef)}
        assert function in defined


@pytest.mark.parametrize("room", ROOMS)
def test_the_quick_tier_visits_every_room(room: str) -> None:
    assert any(line.startswith(f"tests/{room}") for line in QUICK)


def test_no_line_of_the_quick_tier_repeats() -> None:
    assert len(set(QUICK)) == len(QUICK)


def test_the_citation_names_this_version() -> None:
    assert re.findall(r"^version: (\S+)$", text_of("CITATION.cff"), re.M) == [da.__version__]


def test_the_changelog_begins_with_unreleased_and_knows_this_version() -> None:
    sections = re.findall(r"^## (\S+)", text_of("CHANGELOG.md"), re.M)
    assert sections[0] == "Unreleased"
    assert da.__version__ in sections


def test_hooks_use_the_versions_of_the_gate() -> None:
    (ruff,) = [item for item in PROJECT["project"]["optional-dependencies"]["dev"] if item.startswith("ruff")]
    assert set(re.findall(r'additional_dependencies: \["(.*?)"\]', text_of(".pre-commit-config.yaml"))) == {
        ruff
    }


def test_public_ci_covers_every_supported_python() -> None:
    prefix = "Programming Language :: Python :: "
    named = [
        item.removeprefix(prefix) for item in PROJECT["project"]["classifiers"] if item.startswith(prefix)
    ]
    tables = re.findall(r"python: \[(.*)\]", text_of(".github/workflows/ci.yml"))
    assert tables
    assert all(re.findall(r'"(.*?)"', table) == named for table in tables)


def test_public_ci_tests_the_oldest_dependencies() -> None:
    workflow = text_of(".github/workflows/ci.yml")
    for item in PROJECT["project"]["dependencies"]:
        name, _, oldest = item.partition(">=")
        assert f"{name}=={oldest}.*" in workflow


def test_the_quick_tier_is_run_as_the_makefile_and_public_ci_say() -> None:
    command = "-m pytest -n {} @tests/quick.txt"
    assert command.format("$(WORKERS)") in text_of("Makefile")
    assert command.format("2") in text_of(".github/workflows/ci.yml")


PAGES_FOR_CONTRIBUTORS = (
    *("CONTRIBUTING.md", "README.md", "SECURITY.md", "Makefile"),
    *(".github/workflows/ci.yml", ".pre-commit-config.yaml"),
    *("docs/guides/add-an-algorithm.md", "docs/guides/add-a-joint.md"),
)
FOLDERS = "src|tests|docs|design|benchmarks|examples|requirements"
WRITTEN_BY_MAKE = ("docs/_build", "docs/gallery", "docs/jupyter_execute", "docs/sg_execution_times.rst")


@pytest.mark.parametrize("page", PAGES_FOR_CONTRIBUTORS)
def test_every_path_that_contributors_read_of_exists(page: str) -> None:
    named = set(re.findall(rf"(?<![\w./-])((?:{FOLDERS}|\.github)/[\w./*-]*[\w/*])", text_of(page)))
    missing = [
        path for path in named if not path.startswith(WRITTEN_BY_MAKE) and not [*ROOT.glob(path.rstrip("/"))]
    ]
    assert not missing


@pytest.mark.parametrize("page", PAGES_FOR_CONTRIBUTORS)
def test_every_make_target_that_contributors_read_of_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.M))
    commands = re.sub(r"\s+", " ", text_of(page))
    named = set(re.findall(r"(?:`|\$ |run: |name: |\()make ([a-z-]+)(?=[` \n:;)])", commands))
    assert named <= targets


@pytest.mark.parametrize("page", PAGES_FOR_CONTRIBUTORS)
def test_every_name_that_contributors_read_of_exists(page: str) -> None:
    for name in re.findall(r"`(dalembert(?:\.\w+)+)`", text_of(page)):
        pkgutil.resolve_name(name)


def test_contributors_read_of_the_rooms_of_the_import_contract() -> None:
    (layers,) = [item["layers"] for item in PROJECT["tool"]["importlinter"]["contracts"] if "layers" in item]
    rooms = re.findall(r"^    (\w+)  +\w", text_of("CONTRIBUTING.md"), re.M)
    assert rooms == [room for layer in layers for room in layer.split(" | ")]


def test_no_two_modules_share_a_name() -> None:
    modules = [path.stem for path in (ROOT / "src").rglob("*.py") if path.stem != "__init__"]
    assert [name for name, count in Counter(modules).items() if count > 1] == []
