"""Every tag and attribute of URDF: used, kept as a shape, or ignored and listed.

A name in no table is listed too, unless it lies within two letters of something that is used here: then
it is taken for a misspelling, which would change the dynamics silently, and refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dalembert.formats.document import Element
from dalembert.formats.report import Report

__all__ = ["VOCABULARY", "Words", "check_words", "letters_apart"]

MAX_MISSPELLED_LETTERS: Final = 2
"""A name at most this many letters from a known one is taken for a misspelling of it."""


@dataclass(frozen=True, slots=True)
class Words:
    """The names of attributes and children that an element may have; `ignored` ones have no effect."""

    attributes: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    ignored_attributes: tuple[str, ...] = ()
    ignored_children: tuple[str, ...] = ()


VOCABULARY: Final[dict[str, Words]] = {
    "robot": Words(
        attributes=("name",),
        children=("link", "joint", "material"),
        ignored_attributes=("version",),
        ignored_children=("transmission", "gazebo", "sensor", "ros2_control", "group", "group_state"),
    ),
    "link": Words(
        attributes=("name",),
        children=("inertial", "visual", "collision"),
        ignored_attributes=("type",),
        ignored_children=("contact", "sensor", "self_collision_checking", "collision_checking"),
    ),
    "inertial": Words(children=("origin", "mass", "inertia")),
    "origin": Words(attributes=("xyz", "rpy", "quat_xyzw")),
    "mass": Words(attributes=("value",)),
    "inertia": Words(attributes=("ixx", "ixy", "ixz", "iyy", "iyz", "izz")),
    "joint": Words(
        attributes=("name", "type"),
        children=("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
        ignored_children=("calibration", "safety_controller", "hardwareInterface"),
    ),
    "parent": Words(attributes=("link",)),
    "child": Words(attributes=("link",)),
    "axis": Words(attributes=("xyz",)),
    "limit": Words(
        attributes=("lower", "upper", "velocity", "effort"),
        ignored_attributes=("acceleration", "deceleration", "jerk"),
    ),
    "dynamics": Words(attributes=("damping", "friction")),
    "mimic": Words(attributes=("joint", "multiplier", "offset")),
    "visual": Words(
        attributes=("name",), children=("origin", "geometry", "material"), ignored_children=("meshes",)
    ),
    "collision": Words(
        attributes=("name",),
        children=("origin", "geometry"),
        ignored_attributes=("group",),
        ignored_children=("verbose", "material", "contact_coefficients"),
    ),
    "geometry": Words(children=("box", "sphere", "cylinder", "capsule", "mesh")),
    "box": Words(attributes=("size",)),
    "sphere": Words(attributes=("radius",)),
    "cylinder": Words(attributes=("radius", "length")),
    "capsule": Words(attributes=("radius", "length")),
    "mesh": Words(attributes=("filename", "scale")),
    "material": Words(
        attributes=("name",), children=("color",), ignored_children=("texture", "script", "ambient")
    ),
    "color": Words(attributes=("rgba",)),
}
"""What the loader understands, by the tag of the element."""

_LOOKS: Final = frozenset({"visual", "material", "color"})
"""Elements in which a misspelling changes a picture only."""


def check_words(root: Element, report: Report) -> None:
    """List what has no effect; refuse misspellings of what has."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        words = VOCABULARY[element.tag]
        if element.text:
            report.ignore(f"text inside <{element.tag}>", element.line)
        if len(element.attributes) > len(words.attributes) or not element.attributes.keys() <= set(
            words.attributes
        ):
            _check_attributes(element, words, report)
        for child in element.children:
            if child.tag in words.children:
                waiting.append(child)
            else:
                _check_child(child, words, report)


def _check_attributes(element: Element, words: Words, report: Report) -> None:
    for name in element.attributes:
        if name in words.attributes or name.startswith("xmlns"):
            continue
        if name not in words.ignored_attributes:
            _refuse_misspelling(element, f"attribute {name[:40]!r}", name, words.attributes)
        report.ignore(f"attribute {name[:40]!r} of <{element.tag}>", element.line)


def _check_child(child: Element, words: Words, report: Report) -> None:
    assert child.parent is not None
    if child.tag.startswith("xacro:"):
        raise child.error(
            "a xacro macro is not URDF; expand the file first: xacro model.urdf.xacro > model.urdf"
        )
    if child.tag not in words.ignored_children:
        _refuse_misspelling(child, f"unknown tag <{child.tag[:40]}>", child.tag, words.children)
    report.ignore(f"<{child.tag[:40]}> in <{child.parent.tag}>", child.line)


def _refuse_misspelling(element: Element, what: str, name: str, known: Iterable[str]) -> None:
    if element.tag in _LOOKS or (element.parent is not None and element.parent.tag in _LOOKS):
        return
    for word in known:
        if letters_apart(name.lower(), word.lower(), MAX_MISSPELLED_LETTERS) <= MAX_MISSPELLED_LETTERS:
            raise element.error(
                f"{what} looks like a misspelling of {word!r}, which affects the model; correct or delete it"
            )


def letters_apart(a: str, b: str, limit: int) -> int:
    """Return how many letters to insert, delete, replace or exchange with a neighbour turn a into b; limit +
    1 if more.
    """
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        last, before, row = before, row, [i] + [0] * len(b)
        for j, y in enumerate(b, start=1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], last[j - 2] + 1)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)
