"""The library's own functions, one line each: which algorithm, of which arrays, by which methods.

`function(model, name, …)` compiles on first use and keeps the result with the model. The disk cache knows
these functions by the source they are made from, the model's bytes and the options, so that a hit needs no
trace.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final, final

from dalembert import algorithms
from dalembert.algorithms.aligned import aligned
from dalembert.arguments import ArrayArgument
from dalembert.errors import DtypeError, UnknownNameError
from dalembert.execution import CompiledFunction
from dalembert.lowering import Recipe
from dalembert.model import configuration
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.spatial import Vec3

__all__ = [
    "FUNCTIONS",
    "UNROLLED_BODIES",
    "LibraryFunction",
    "argument_shape",
    "function",
    "library_recipe",
    "no_model",
]

UNROLLED_BODIES: Final = 150
"""Trees of more bodies are compiled as loops; measured, see design/large-trees.md."""


@final
@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """An algorithm under its public name: `methods` by name, the default first; `arguments` in call order.

    `frame_free`: its result does not depend on the frames of the bodies, so it runs on aligned ones. `loops`:
    the methods written with tree passes alone, so that a large tree can be compiled as loops.
    """

    methods: Mapping[str, Callable[..., Any]]
    arguments: tuple[str, ...]
    frame_free: bool = False
    loops: tuple[str, ...] = ()


def argument_shape(model: Model, name: str) -> tuple[int, ...] | None:
    """The shape of an argument known by name; None where the name says nothing."""
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("q", "q0", "q1", "q2"), (model.nq,)),
        **dict.fromkeys(("v", "a", "tau", "dv"), (model.nv,)),
        **dict.fromkeys(("time", "dt"), ()),
        "external_forces": (len(model.bodies), 6),
    }
    return shapes.get(name)


def function(
    model: Model,
    name: str,
    method: str | None = None,
    *,
    arrays: tuple[str, ...] = (),
    options: tuple[tuple[str, Any], ...] = (),
    dtype: str = "float64",
    by: str | None = None,
) -> CompiledFunction:
    """A library function compiled for a model; `arrays` are further arrays, `options` static arguments."""
    key = (name, method, arrays, options, dtype, by)
    try:
        found = model.functions.get(key)
    except AttributeError:
        raise no_model(name, model) from None
    if found is None:
        # Two threads may both get here: they make equal functions, and share their kernels on disk.
        recipe = library_recipe(model, name, method, arrays=arrays, options=options, by=by)
        found = model.functions[key] = CompiledFunction(
            recipe,
            dtype=dtype,
            sibling=lambda other: function(
                model, name, method, arrays=arrays, options=options, dtype=other, by=by
            ),
        )
        if key == (name, None, (), (), "float64", None):
            model.functions[name] = found
    return found


def no_model(name: str, given: object) -> DtypeError:
    """The error where a model was expected."""
    return DtypeError(
        f"the first argument of {name} must be a Model, got {type(given).__name__}; "
        "da.load reads one from a file, da.models has some ready"
    )


def library_recipe(
    model: Model,
    name: str,
    method: str | None = None,
    *,
    arrays: tuple[str, ...] = (),
    options: tuple[tuple[str, Any], ...] = (),
    parameters: tuple[ArrayArgument, ...] = (),
    by: str | None = None,
) -> Recipe:
    """What to compile for a library function."""
    entry = FUNCTIONS[name]
    chosen = next(iter(entry.methods)) if method is None else method
    if chosen not in entry.methods:
        raise UnknownNameError.of(f"method of {name}", chosen, entry.methods)
    algorithm = entry.methods[chosen]
    static = dict(options)
    positional = len(entry.arguments)

    def call(tree: Tree, *values: Any) -> Any:
        frames = aligned(tree) if entry.frame_free else tree
        given = dict(zip(arrays, values[positional:], strict=True))
        return algorithm(frames, *values[:positional], **given, **static)

    names = (*entry.arguments, *arrays)
    shapes = [(item, argument_shape(model, item)) for item in names]
    looped = (
        chosen in entry.loops
        and by is None
        and not parameters
        and len(model.bodies) > UNROLLED_BODIES
        and _can_loop(model)
    )
    identity = (
        f"{name} {chosen} {names} {options} {parameters} {by} {looped} {model.digest} {source_digest()}"
    )
    return Recipe(
        name=name,
        function=call,
        model=model,
        arguments=tuple(ArrayArgument(item, shape) for item, shape in shapes if shape is not None),
        parameters=parameters,
        by=by,
        looped=looped,
        identity=hashlib.sha256(identity.encode()).hexdigest(),
    )


def _forces_alone(algorithm: Callable[..., Any]) -> Callable[..., Any]:
    """An algorithm with by-products, for its forces only."""
    return lambda *args, **options: algorithm(*args, **options).tau


def _rotations_translations(tree: Tree, q: Any, *, time: Any = None) -> tuple[list[Any], list[Any]]:
    poses = list(algorithms.forward_kinematics(tree, q, time=time))
    return [pose.R for pose in poses], [pose.p for pose in poses]


def _frame_motion(model: Model, q: Any, v: Any, a: Any, *, where: str, time: Any = None) -> Any:
    place = model.frame(where)
    if place.body < 0:
        return place.placement.p, Vec3.zero(), Vec3.zero()
    motion = algorithms.body_motions(model, q, v, a, time=time)[place.body]
    return tuple(algorithms.point_motion(motion, place.placement.p))


def _can_loop(model: Model) -> bool:
    return not model.couplings and not model.time_dependent


FUNCTIONS: Final[dict[str, LibraryFunction]] = {
    "inverse_dynamics": LibraryFunction(
        {"rnea": algorithms.inverse_dynamics, "rnea_spatial": _forces_alone(algorithms.rnea_spatial)},
        ("q", "v", "a"),
        frame_free=True,
        loops=("rnea",),
    ),
    "forward_dynamics": LibraryFunction(
        {
            "aba": algorithms.forward_dynamics,
            "crba": functools.partial(algorithms.forward_dynamics, method="crba"),
            "aba_spatial": algorithms.forward_dynamics_spatial,
        },
        ("q", "v", "tau"),
        frame_free=True,
        loops=("aba", "aba_spatial"),
    ),
    "inertial_forces": LibraryFunction(
        {"rnea": algorithms.differential_inverse_dynamics}, ("q", "a"), frame_free=True, loops=("rnea",)
    ),
    "mass_matrix": LibraryFunction(
        {
            "crba": algorithms.mass_matrix,
            "rnea_columns": algorithms.mass_matrix_by_columns,
            "crba_common_frame": algorithms.crba_common_frame,
        },
        ("q",),
        frame_free=True,
    ),
    "inverse_mass_matrix": LibraryFunction({"ltdl": algorithms.inverse_mass_matrix}, ("q",), frame_free=True),
    "bias_forces": LibraryFunction(
        {"rnea": algorithms.bias_forces}, ("q", "v"), frame_free=True, loops=("rnea",)
    ),
    "gravity_forces": LibraryFunction(
        {"rnea": algorithms.gravity_forces}, ("q",), frame_free=True, loops=("rnea",)
    ),
    "coriolis_forces": LibraryFunction(
        {"rnea": algorithms.coriolis_forces}, ("q", "v"), frame_free=True, loops=("rnea",)
    ),
    "passive_forces": LibraryFunction({"joints": algorithms.passive_forces}, ("q", "v")),
    "forward_kinematics": LibraryFunction({"tree": _rotations_translations}, ("q",)),
    "jacobian": LibraryFunction({"tree": algorithms.jacobian}, ("q",)),
    "jacobian_rate": LibraryFunction({"tree": algorithms.jacobian_rate}, ("q", "v")),
    "point_motion": LibraryFunction({"tree": _frame_motion}, ("q", "v", "a")),
    "kinetic_energy": LibraryFunction({"tree": algorithms.kinetic_energy}, ("q", "v"), frame_free=True),
    "potential_energy": LibraryFunction({"tree": algorithms.potential_energy}, ("q",)),
    "center_of_mass": LibraryFunction({"tree": algorithms.center_of_mass}, ("q",)),
    "centroidal_momentum": LibraryFunction({"tree": algorithms.centroidal_momentum}, ("q", "v")),
    "centroidal_momentum_matrix": LibraryFunction({"tree": algorithms.centroidal_momentum_matrix}, ("q",)),
    "integrate": LibraryFunction({"manifold": configuration.integrate}, ("q", "dv")),
    "difference": LibraryFunction({"manifold": configuration.difference}, ("q0", "q1")),
    "normalize": LibraryFunction({"manifold": configuration.normalize}, ("q",)),
    "step": LibraryFunction(
        {"tree": functools.partial(algorithms.step, passive=True)}, ("q", "v", "tau", "dt"), frame_free=True
    ),
}


@functools.cache
def source_digest() -> str:
    """SHA-256 of the package's own source: any change of it makes other cache keys."""
    digest = hashlib.sha256()
    for file in sorted(_sources(resources.files("dalembert")), key=str):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _sources(folder: Traversable) -> list[Traversable]:
    found: list[Traversable] = []
    pending = [folder]
    while pending:
        for item in pending.pop().iterdir():
            if item.is_dir():
                pending.append(item)
            elif item.name.endswith(".py"):
                found.append(item)
    return found
