"""Declarations of the library's functions of arrays, each beside its algorithm.

    @public("dynamics", "q v", method="rnea", frame_free=True, loops=True)
    def coriolis_forces(tree, q, v, *, time=None): ...

is all that makes `da.coriolis_forces` compile, check its arguments and appear in `help`, in the type stubs
and in the documentation. This module is data alone: `compiler.library` compiles what is declared, `api`
makes the public functions.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

if TYPE_CHECKING:
    from dalembert.model.model import Model

F = TypeVar("F", bound=Callable[..., Any])

Shape = Callable[["Model"], tuple[int, ...]]
"""The shape of an array of one sample, for a model."""

Methods = Mapping[str, Callable[..., Any]]
"""Algorithms by the names that `method=` takes."""

REQUIRED: Final = object()
"""The default of an option that every call must give."""

LOADS: Final = "external_forces time"
"""Optional arrays of most functions of forces; `external_frame` comes with the forces."""

CONSTRAINED_LOADS: Final = "external_forces stabilization time"
"""Optional arrays of functions whose results depend on the stabilisation of constraints."""

SCLERONOMIC: Final = {"time": "kinetic energy is a quadratic form of v only where no joint moves by itself"}
JOINTS_ALONE: Final = {"time": "the result depends on the coordinates of each joint alone"}
NO_LOADS: Final = {"external_forces": "the result does not depend on forces from outside"}
"""Reasons for which a function does not take an option, for `LibraryFunction.without`."""


def per_velocity(model: Model) -> tuple[int, ...]:
    """Return the shape of an array with one number for each velocity variable."""
    return (model.nv,)


def per_position(model: Model) -> tuple[int, ...]:
    """Return the shape of a configuration."""
    return (model.nq,)


def constant_shape(*shape: int) -> Shape:
    """Return a shape that is the same for all models."""
    return lambda model: shape


def per_body(width: int) -> Shape:
    """Return the shape of an array with `width` numbers for each body."""
    return lambda model: (len(model.bodies), width)


SHAPES: Final[Mapping[str, Shape]] = {
    **dict.fromkeys(("q", "q0", "q1", "q2"), per_position),
    **dict.fromkeys(("v", "a", "tau", "dv"), per_velocity),
    **dict.fromkeys(("time", "dt", "stabilization"), constant_shape()),
    "external_forces": per_body(6),
}
"""Shapes of the arrays that are known by their names in any function, those of users among them."""

OWN_SHAPES: Final[Mapping[str, Shape]] = {
    **SHAPES,
    "q_ref": per_position,
    **dict.fromkeys(("p", "u", "w", "v_ref", "a_ref", "stiffness", "damping", "kp", "kd"), per_velocity),
    "effort": per_velocity,
    "body_velocities": per_body(6),
    **dict.fromkeys(("forces", "points", "torques", "joint_torques"), per_body(3)),
}
"""Shapes of the arrays of the library's own functions."""


def later(path: str) -> Callable[..., Any]:
    """Return a function `module:name` of dalembert that is imported when it is first called."""
    resolve = functools.cache(lambda: pkgutil.resolve_name(f"dalembert.{path}"))
    return lambda *args, **options: resolve()(*args, **options)


@final
@dataclass(frozen=True, slots=True)
class Precondition:
    """A precondition: a sample is rejected if `measure(tree, *arrays)` of its arrays exceeds `tolerance`.

    `tolerance` is by float type. A measure that is a literal number (for models without the condition) costs
    nothing. `message` states the fact and the remedy, with {measure} and, if `place(tree, *arrays)` names the
    part of the model at fault, {place}; the function's name and the sample are prepended.
    """

    measure: Callable[..., Any]
    tolerance: Mapping[str, float]
    message: str
    place: Callable[..., str] | None = None


@final
@dataclass(frozen=True, slots=True)
class Option:
    """A static argument of a public function: its type in stubs, its default, the algorithm's name for it.

    `read(model, value)` checks a value and returns what the algorithm takes.
    """

    annotation: str
    default: object = REQUIRED
    keyword: str = ""
    read: Callable[[Model, Any], Any] | None = None


def choice(*values: str) -> Option:
    """Return an option with these values, of which the first is the default."""
    return Option(f"Literal[{', '.join(map(repr, values))}]".replace("'", '"'), values[0])


FRAME_NAME: Final = Option("str", keyword="where", read=lambda model, name: model.frame(name).name)
"""The name of a body or frame, which functions of a frame take after their arrays."""

JACOBIAN: Final = {"frame_name": FRAME_NAME, "frame": choice("world_aligned", "body", "world")}
"""Options of functions of a frame: its name, and the place and axes in which results are expressed."""


@final
@dataclass(frozen=True, eq=False)
class LibraryFunction:
    """A function of arrays under its public name, compiled for a model on first use.

    `arguments`: required arrays in call order, `keywords`: those that the algorithm takes by name; `optional`
    arrays; static `options`. `method`: the name of the decorated algorithm, "" where it chooses among the
    `others` by the model; these are the further algorithms for `method=`, by name, or a function that returns
    them. `frame_free`: the result does not depend on the body frames, so the function runs on aligned ones.
    `loops`: the methods written with tree passes alone, which can be compiled as loops over a large tree.
    `shapes`: of arrays, where they are not those of `OWN_SHAPES`. `preconditions` of the arguments. `one_of`:
    optional arrays of which every call must give at least one. `without`: the options that most functions
    have and this one does not, each with the reason. `unit_quaternions`: whether quaternions in the
    arguments must have unit norm. `empty`: the shape of a result that has no entries. `returns`: the type of
    the results, a name of `api.records` where a class holds them. `subject`: the module of `dalembert.api`
    that publishes the function, "" for one that is compiled but not public by itself. `differentiable`:
    whether `da.dynamics.derivative` takes it. `by_place`: optional arrays that public calls may give by
    place. `gains`: arrays that public calls may give as one number for all velocity variables; none may be
    negative.
    """

    name: str
    subject: str
    algorithm: Callable[..., Any]
    arguments: tuple[str, ...]
    keywords: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)
    method: str = ""
    others: Methods | Callable[[], Methods] = field(default_factory=dict)
    frame_free: bool = False
    loops: tuple[str, ...] = ()
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    preconditions: tuple[Precondition, ...] = ()
    one_of: tuple[str, ...] = ()
    without: Mapping[str, str] = field(default_factory=dict)
    unit_quaternions: bool = True
    empty: tuple[int, ...] | Shape | None = None
    returns: str = "Array"
    differentiable: bool = False
    by_place: tuple[str, ...] = ()
    gains: tuple[str, ...] = ()

    @functools.cached_property
    def methods(self) -> Methods:
        """The algorithms by the names that `method=` takes, the default first."""
        own = {self.method: self.algorithm} if self.method else {}
        return {**own, **(self.others() if callable(self.others) else self.others)}

    def shape(self, model: Model, name: str) -> tuple[int, ...] | None:
        """Return the shape of an array; None where its name says nothing."""
        known = self.shapes.get(name) or OWN_SHAPES.get(name)
        return None if known is None else known(model)


DECLARED: Final[dict[str, LibraryFunction]] = {}
"""The functions whose modules have been imported so far, by name."""


def public(
    subject: str,
    arguments: str,
    *,
    name: str = "",
    keywords: str = "",
    optional: str = "time",
    loops: bool | tuple[str, ...] = (),
    by_place: str = "external_forces forces",
    **more: Any,
) -> Callable[[F], F]:
    """Declare a public function: the decorated algorithm computes it and has its docstring.

    Arrays are named in one string; `loops=True` is a single method that can be compiled as loops.
    """

    def declare(algorithm: F) -> F:
        known = name or algorithm.__name__
        DECLARED[known] = LibraryFunction(
            known,
            subject,
            algorithm,
            arguments=(*arguments.split(), *keywords.split()),
            keywords=tuple(keywords.split()),
            optional=tuple(array for array in optional.split() if array not in more.get("without", ())),
            by_place=tuple(by_place.split()),
            loops=(more["method"],) if loops is True else loops or (),
            **more,
        )
        return algorithm

    return declare


def kernel(arguments: str, **declaration: Any) -> Callable[[F], F]:
    """Declare a function that is compiled for an ordinary function of the library."""
    return public("", arguments, **declaration)
