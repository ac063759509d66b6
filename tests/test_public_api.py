"""The public names and signatures change on purpose only: a change updates `tests/public_api.txt` with it."""

from __future__ import annotations

import dataclasses
import enum
from typing import NamedTuple

import pytest
from tests import public_api


def test_public_names_are_those_of_the_snapshot() -> None:
    changed = public_api.difference()
    assert not changed, (
        f"the public API differs from tests/public_api.txt; if that is meant, run {public_api.UPDATE} and "
        f"add a line to CHANGELOG.md:\n{changed}"
    )


def test_the_snapshot_holds_every_public_name_of_the_top() -> None:
    import dalembert as da

    listed = {line.split("(")[0].split(":")[0].split(" ")[0] for line in public_api.describe_api()}
    assert {f"dalembert.{name}" for name in da.__all__} <= listed


def test_no_line_holds_an_address() -> None:
    assert not [line for line in public_api.describe_api() if " at 0x" in line or "<" in line]


def test_every_kind_of_parameter_is_told_apart() -> None:
    def function(a, /, b, c=1.5, *rest, d, e=None, f=(1,), g=object, **more): ...

    def keywords(a, *, b="x"): ...

    assert public_api._signature(function) == "(a, /, b, c=1.5, *rest, d, e=None, f=(1,), g=..., **more)"
    assert public_api._signature(keywords, skip_first=True) == "(*, b='x')"
    assert public_api._signature(lambda a, b, /: a) == "(a, b, /)"


class Record(NamedTuple):
    """A named tuple with a default."""

    first: int
    second: float = 2.0


@dataclasses.dataclass(frozen=True)
class Fields:
    """A dataclass with a method, a property and an operator."""

    size: int
    _hidden: int = 0

    def grow(self, by: int, *, times: int = 1) -> None: ...

    @property
    def area(self) -> int:
        return self.size

    def __add__(self, other: Fields) -> Fields: ...


class More(Fields):
    """A class with a public base."""

    def shrink(self) -> None: ...


class Colour(enum.Enum):
    """An enumeration."""

    RED = 1


@pytest.mark.parametrize(
    ("cls", "lines"),
    [
        (Record, ["x(first, second=2.0): class", "x.first: field", "x.second: field"]),
        (
            Fields,
            [
                "x(size, _hidden=0): class",
                "x.__add__(other)",
                "x.area: attribute",
                "x.grow(by, *, times=1)",
                "x.size: field",
            ],
        ),
        (More, ["x(size, _hidden=0): class of Fields", "x.shrink()"]),
        (Colour, ["x: class", "x.RED: member"]),
        (ValueError, ["x: class"]),
    ],
)
def test_classes_are_described_by_constructor_and_members(
    cls: type, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_api, "_is_ours", lambda item: item in (Record, Fields, More, Colour))
    assert [*public_api._class("x", cls, {Fields})] == lines
