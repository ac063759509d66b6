"""The public names and signatures change on purpose only: a change updates `tests/public_api.txt` with it."""

from __future__ import annotations

import dataclasses
import enum
from typing import NamedTuple

import pytest
from tests import public_api, public_stubs

import dalembert as da
from dalembert.api import declared as public_functions
from dalembert.compiler.library import FUNCTIONS


def test_public_names_are_those_of_the_snapshot() -> None:
    changed = public_api.difference()
    assert not changed, (
        f"the public API differs from tests/public_api.txt; if that is meant, run {public_api.UPDATE} and "
        f"add a line to CHANGELOG.md:\n{changed}"
    )


def test_type_stubs_are_those_of_the_declarations() -> None:
    assert not list(public_stubs.differences())


def test_every_declared_function_is_in_the_module_of_its_subject() -> None:
    for name, declared in FUNCTIONS.items():
        if declared.subject:
            assert getattr(getattr(da, declared.subject), name) is getattr(public_functions, name)


def test_the_top_is_small_and_no_two_names_differ_by_case_only() -> None:
    names = [name for name in da.__all__ if name != "__version__"]
    assert len(names) <= 64
    twins = [name for name in names if name.lower() != name and name.lower() in names]
    assert twins == ["Simulation"]  # a promise, in a package of that name


def test_moved_names_work_for_one_release_and_say_where_they_are() -> None:
    for name, new in (
        ("coriolis_matrix", "geometry.coriolis_matrix"),
        ("Ellipsoid", "joints.EllipsoidJoint"),
        ("Box", "shapes.Box"),
        ("Motion", "spatial.Motion"),
        ("mobility", "analysis.mobility"),
        ("CompiledFunction", "compiler.CompiledFunction"),
    ):
        with pytest.warns(DeprecationWarning, match=rf"dalembert\.{name} has moved to dalembert\.{new};"):
            assert getattr(da, name).__name__ == new.split(".")[-1]


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (([0.1],), {}, "missing 2 required positional arguments: 'v' and 'tau'"),
        (([0.1], [0.0], [0.0], None, 3), {}, "takes from 4 to 5 positional arguments but 6 were given"),
        (([0.1], [0.0], [0.0]), {"outt": None}, "got an unexpected keyword argument 'outt'"),
        (([0.1], [0.0], [0.0]), {"tau": [0.0]}, "got multiple values for argument 'tau'"),
    ],
)
def test_calls_that_do_not_fit_the_signature_are_type_errors(values, options, message) -> None:
    with pytest.raises(TypeError, match=rf"forward_dynamics\(\) {message}"):
        da.forward_dynamics(da.models.pendulum(), *values, **options)


def test_the_snapshot_holds_every_public_name_of_the_top() -> None:
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
