"""The page of file formats names every tag and attribute that a file can hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dalembert.formats.urdf.elements import JOINT_TYPES, VOCABULARY

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "file-formats.md"


def section(title: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.split(r"^## ", text.split(f"\n## {title}\n")[1], flags=re.M)[0].splitlines()


def words(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


def test_every_word_of_urdf_stands_in_its_column() -> None:
    rows = {}
    for line in section("URDF"):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 4:
            for element in words(cells[0]):
                rows[element] = cells
    assert set(rows) == set(VOCABULARY)
    for element, known in VOCABULARY.items():
        _, attributes, children, listed = rows[element]
        assert words(attributes) == set(known.attributes), element
        assert words(children) == set(known.children), element
        assert words(listed) - set(known.attributes) == {*known.ignored_attributes, *known.ignored_children}


def test_every_type_of_joint_stands_in_the_table() -> None:
    assert set(JOINT_TYPES) <= words("\n".join(section("URDF")))


def test_every_word_of_mjcf_stands_in_the_table() -> None:
    mujoco = pytest.importorskip("mujoco")
    if not mujoco.__version__.startswith("4.0"):
        pytest.skip("the table is for MuJoCo 4.0")
    written = words("\n".join(section("MJCF")))
    whole = {"sensor", "visual", "size", "statistic"}  # told of as a whole
    missing, above = set(), ""
    for line in mujoco.mj_printSchema(False, False).splitlines():
        indent, word = len(line) - len(line.lstrip()), line[:30].split()
        if word:
            name = word[0].replace("(world)", "")
            above = name if indent == 3 else above
            if above not in whole:
                missing |= {name} - written
        if above not in whole:
            missing |= set(line[30:].split()) - written
    assert missing == set()
