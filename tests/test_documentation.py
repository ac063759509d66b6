"""What the documentation shows is true: its code runs and its links lead somewhere."""

import re
from pathlib import Path

import numpy as np
import pytest

import dalembert as da

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
