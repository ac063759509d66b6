"""From a function of a model to a program: the tracer meets the physics.

A `Recipe` says what is to be computed: a function of a model and arrays, which arrays, and which values of
the model are run-time parameters. `lower` traces it, unrolled, or for a large tree as loops over tables.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias, final

import numpy as np

from dalembert import scalar
from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.declaration import Precondition
from dalembert.call.arguments import Array, ArrayArgument
from dalembert.compiler.tables import InputTable, TableTree, TableVector
from dalembert.errors import ProgramSizeError, TracingError
from dalembert.model import configuration
from dalembert.model.body import Body
from dalembert.model.model import Model
from dalembert.model.tree import PerBody
from dalembert.model.user_functions import enrol_tracer
from dalembert.model.values import replace_values
from dalembert.scalar import Scalar
from dalembert.spatial import ArticulatedInertia, Placement, RigidInertia, Value
from dalembert.tracing.derivative_calls import (
    Chart,
    Charts,
    Derivative,
    derivative_trace,
    derived_program,
    group_results,
)
from dalembert.tracing.expression import Expression
from dalembert.tracing.graph import Graph, check_size
from dalembert.tracing.program import ArraySpec, Program, Statement
from dalembert.tracing.trace import ArrayOutput, Trace, copy_trace, digest_of, replay, trace

POSITIONS: Final = ("q", "q0", "q1", "q2", "q_ref")
"""Arguments of these names are configurations: their quaternions are checked, and derivatives by them
are taken on the tangent space."""

QUATERNION_TOLERANCE: Final = {"float64": 1e-6, "float32": 1e-4}
"""How far the norm of a quaternion may be from one."""

MEASURE: Final = " measure"
"""The name of an output that is compared with a tolerance and is not a result; no argument has that name."""
SIZE_REMEDY: Final = (
    "take fewer bodies or, with contact, fewer pairs of shapes (pairs=, exclude=, self_collision=False or a "
    "smaller nearest= of da.contact.Rigid and da.contact.Compliant), or raise the limit by the environment "
    "variable DALEMBERT_MAX_OPERATIONS: a million operations take about 100 s and 1.5 GB to compile"
)
"""What to do about a program that is too large."""

Rebuild: TypeAlias = Callable[[Sequence[Any]], Any]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """A function to compile.

    `function(tree, *arrays)` with one nested list for each argument; `derivatives` are what is wanted instead
    of its value, each of the one before; `looped` asks for loops over tables; `identity` names a
    function of the library's own in the disk cache, so that a hit needs no trace; `refusals` are what rows
    must fulfil beside unit quaternions, which `unit_quaternions=False` does not ask for. `traced`: the trace
    of a function of the caller's, from which all is compiled, so that nothing that the function reads can
    change in between, and `tangents` that of dq/dt where functions in the model make it; `state`: that of
    functions in the model for which alone a recipe without a trace of its own, as loops over tables, may be
    traced; `divergent`: whether samples of a block go through loops of very different lengths.
    """

    name: str
    function: Callable[..., Any]
    model: Model
    arguments: tuple[ArrayArgument, ...]
    parameters: tuple[ArrayArgument, ...] = ()
    derivatives: tuple[Derivative, ...] = ()
    looped: bool = False
    identity: str | None = None
    refusals: tuple[Precondition, ...] = ()
    unit_quaternions: bool = True
    traced: Trace | None = None
    tangents: Trace | None = None
    state: str | None = None
    divergent: bool = False

    def record(self) -> Recipe:
        """Return the recipe of what the function computes now; later changes do not affect it."""
        if self.looped:
            return dataclasses.replace(self, state=self.model.state_of_functions)
        tangents = None
        if self.model.has_functions and any(map(self.is_configuration, self.arguments)):
            tangents = trace(self._rates, [ArrayArgument("q", (self.model.nq,))])
        with _named_in_size_errors(self):
            return dataclasses.replace(self, traced=trace_recipe(self), tangents=tangents)

    @property
    def disk_key(self) -> str | None:
        """The name of the program in the disk cache; None for its digest, where functions of the caller's in
        the model make it."""
        return None if self.model.has_functions else self.identity

    @property
    def signature(self) -> tuple[ArrayArgument, ...]:
        """The arrays of a call: the function's arguments, then what its derivatives add."""
        more = (item for derivative in self.derivatives for item in derivative.inputs)
        return (*self.arguments, *more)

    def charts(self) -> dict[str, Chart]:
        """Return the tangent spaces of configurations: d f(integrate(q, t e_j)) / dt = (df/dq) Q(q) e_j."""
        return {
            item.name: Chart(self.model.nv, self._rates)
            for item in self.arguments
            if self.is_configuration(item)
        }

    def _rates(self, q: Sequence[Any]) -> list[list[Scalar]]:
        """Return dq/dt for each unit velocity, as it was recorded if it was."""
        if self.tangents is None:
            units = np.eye(self.model.nv).tolist()
            return [configuration.position_rate(self.model, q, unit) for unit in units]
        (values,) = replay(self.tangents, q[0].graph, {"q": q})
        return [values[k : k + len(q)] for k in range(0, len(values), len(q))]

    def on_model(self, function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
        """Call `function(model, *arguments)` with the arguments and then the parameters given in `arrays`."""
        count = len(self.arguments)
        model = self.model
        if self.parameters:
            names = [parameter.name for parameter in self.parameters]
            model = replace_values(model, dict(zip(names, arrays[count:], strict=True)))
        return function(model, *arrays[:count])

    def is_configuration(self, argument: ArrayArgument) -> bool:
        """Return whether an argument is a q, by its name and its shape."""
        return argument.name in POSITIONS and argument.shape == (self.model.nq,)

    def quaternions(self, argument: ArrayArgument) -> tuple[slice, ...]:
        """Return the parts of an argument that must be unit quaternions."""
        if not self.unit_quaternions or not self.is_configuration(argument):
            return ()
        return configuration.unit_quaternions(self.model)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """A program, its results, and how they are returned: `rebuild` takes one array for each."""

    program: Program
    results: tuple[ArrayArgument, ...]
    rebuild: Rebuild

    @property
    def nonzero(self) -> tuple[Array, ...]:
        """The elements of each result that are not zero by structure."""
        found = [np.zeros(item.size, bool) for item in self.results]
        place = {spec.name: mask for spec, mask in zip(self.program.outputs, found, strict=True)}
        tables = self.program.tables
        for case, own in (run for loop in self.program.loops for run in loop.runs(tables)):
            for store in case:
                if store.array in place and not scalar.is_zero(store.value):
                    place[store.array][store.address.positions(tables, own)] = True
        return tuple(mask.reshape(item.shape) for item, mask in zip(self.results, found, strict=True))


def lower(recipe: Recipe, dtype: str) -> Lowered:
    """Trace a recipe. `dtype` decides only how exact a unit quaternion must be."""
    if recipe.state is not None and recipe.state != recipe.model.state_of_functions:
        raise TracingError(
            f"{recipe.name}: a function in {recipe.model!r} reads something that has changed since "
            "da.compile, and this part was not traced before; call da.compile again"
        )
    with _named_in_size_errors(recipe):
        lowered = _lower_looped(recipe, dtype) if recipe.looped else _lower_unrolled(recipe, dtype)
        check_size(lowered.program)
    return lowered


@contextlib.contextmanager
def _named_in_size_errors(recipe: Recipe) -> Iterator[None]:
    """Name function, model and remedy where a program is too large."""
    try:
        yield
    except ProgramSizeError as error:
        raise ProgramSizeError(f"{recipe.name} for {recipe.model!r}: {error}; {SIZE_REMEDY}") from error


def trace_recipe(recipe: Recipe) -> Trace:
    """Trace the function of a recipe, without its derivatives, and then what rows must fulfil: one output
    `MEASURE` more for each."""
    measures: list[Scalar] = []

    def call(*symbols: Any) -> Any:
        result = recipe.on_model(recipe.function, symbols)
        measures.extend(recipe.on_model(refusal.measure, symbols) for refusal in recipe.refusals)
        return result

    traced = trace(call, (*recipe.arguments, *recipe.parameters), flatten=as_lists)
    more = (ArrayOutput(MEASURE, (), (traced.graph.coerce(measure),)) for measure in measures)
    return dataclasses.replace(traced, outputs=(*traced.outputs, *more))


def _lower_unrolled(recipe: Recipe, dtype: str) -> Lowered:
    whole = trace_recipe(recipe) if recipe.traced is None else copy_trace(recipe.traced)
    outputs = tuple(output for output in whole.outputs if output.name != MEASURE)
    measures = [output.values[0] for output in whole.outputs if output.name == MEASURE]
    traced = dataclasses.replace(whole, outputs=outputs)
    check = _rejection_condition(traced.graph, recipe, dtype, measures)
    if traced.graph.loops and recipe.derivatives:
        lowered = _assemble_program(traced, dataclasses.replace(recipe, derivatives=()), check)
        charts = Charts(traced.graph, recipe.charts(), _shapes(recipe))
        return _differentiate_program(recipe, lowered.program, lowered.results, charts, traced.rebuild)
    for derivative in recipe.derivatives:
        traced = derivative_trace(traced, derivative, recipe.charts())
    return _assemble_program(traced, recipe, check)


def _assemble_program(traced: Trace, recipe: Recipe, check: Expression | None) -> Lowered:
    """Assemble a program whose results have names of their own, since a function may return its argument."""
    named = (dataclasses.replace(item, name=f"result {item.name}") for item in traced.outputs)
    inputs = (*recipe.signature, *recipe.parameters)
    program = dataclasses.replace(traced, inputs=inputs, outputs=tuple(named), check=check).program()
    results = tuple(ArrayArgument(item.name, item.shape) for item in traced.outputs)
    return Lowered(program, results, lambda arrays: group_results(arrays, recipe.derivatives, traced.rebuild))


def _lower_looped(recipe: Recipe, dtype: str) -> Lowered:
    frames = aligned(recipe.model)
    needed: frozenset[tuple[str, int, int]] | None = None
    for _ in range(2):  # the first trace finds out which intermediate values later passes read
        graph = Graph()
        tree = TableTree(frames, graph, needed)
        arrays = [InputTable(graph, item.name, width=math.prod(item.shape[1:])) for item in recipe.arguments]
        result = recipe.function(tree, *arrays)
        needed = tree.leaves_read()
    if not isinstance(result, TableVector):
        raise TracingError(f"{recipe.name} cannot be compiled as loops: it returns {type(result).__name__}")
    if graph.loops:
        raise TracingError(
            f"{recipe.name}: a function that iterates (scalar.loop) cannot be compiled as loops over the "
            "bodies of a large tree"
        )
    program = Program(
        inputs=tuple(ArraySpec(item.name, item.size) for item in recipe.arguments),
        outputs=tuple(tree.outputs),
        states=tuple(tree.states),
        statements=tuple(tree.statements),
        tables=tree.tables | graph.tables,
        check=_rejection_condition(graph, recipe, dtype),
    )
    results = [ArrayArgument("output", (result.size,))]
    charts = _TableCharts(graph, recipe.charts(), _shapes(recipe), tree)
    return _differentiate_program(recipe, program, results, charts, lambda arrays: arrays[0])


def _differentiate_program(
    recipe: Recipe, program: Program, results: Sequence[ArrayArgument], charts: Charts, rebuild: Rebuild
) -> Lowered:
    """Return a program with loops and its requested derivatives."""
    arguments = (*recipe.signature, *recipe.parameters)
    program, found = derived_program(program, results, recipe.derivatives, arguments, charts)
    return Lowered(program, found, lambda arrays: group_results(arrays, recipe.derivatives, rebuild))


def _shapes(recipe: Recipe) -> dict[str, tuple[int, ...]]:
    return {item.name: item.shape for item in (*recipe.signature, *recipe.parameters)}


@final
@dataclass(slots=True, eq=False)
class _TableCharts(Charts):
    """Charts of a large tree, joint by joint."""

    tree: TableTree

    def rate(self, argument: str, change: str, target: str) -> Statement:
        q: Any = InputTable(self.graph, argument)
        dq: Any = InputTable(self.graph, change)
        return self.tree.per_joint(
            target, "q", lambda body: body.joint.position_rate(body.own_q(q), body.own_v(dq))
        )

    def slope(self, argument: str, slope: str, target: str) -> Statement:
        q: Any = InputTable(self.graph, argument)
        slopes: Any = InputTable(self.graph, slope)

        def joint_slope(body: Body) -> list[Scalar]:
            own_q, own = body.own_q(q), body.own_q(slopes)
            rates = [body.joint.position_rate(own_q, unit) for unit in np.eye(body.nv).tolist()]
            return [sum((a * b for a, b in zip(rate, own, strict=True)), 0.0) for rate in rates]

        return self.tree.per_joint(target, "v", joint_slope)

    def directions(self, argument: str) -> NoReturn:
        raise TracingError("the Jacobian of a tree in loops is made of products with directions")


def as_lists(value: Any) -> Any:
    """Return spatial values as nested lists: 3, 3x3, 6 numbers (angular first), 4x4 homogeneous, 6x6."""
    if isinstance(value, PerBody | list | tuple):
        return [as_lists(item) for item in value]
    if isinstance(value, Placement):
        return value.homogeneous()
    if isinstance(value, RigidInertia | ArticulatedInertia):
        return value.matrix()
    if isinstance(value, Value):
        return value.to_list()  # type: ignore[attr-defined]
    return value


def _trace_digest(function: Callable[..., Any], shapes: Sequence[tuple[int, ...]]) -> str:
    """Return the digest of the trace of any function of arrays."""
    inputs = [ArrayArgument(f"argument {k}", shape) for k, shape in enumerate(shapes)]
    return digest_of(trace(function, inputs, flatten=as_lists))


enrol_tracer(_trace_digest)


def _rejection_condition(
    graph: Graph, recipe: Recipe, dtype: str, measures: Sequence[Scalar] = ()
) -> Expression | None:
    """Return the condition that a quaternion of a configuration is off unit norm or not a number, or that a
    measure exceeds its tolerance; None where there is nothing to check."""
    tolerance = 2.0 * QUATERNION_TOLERANCE[dtype]  # |p|^2 is twice as far from one as |p|
    bad: Scalar = False
    for argument in recipe.arguments:
        for place in recipe.quaternions(argument):
            parts = [graph.input(argument.name, k) for k in range(place.start, place.stop)]
            square = sum((p * p for p in parts), 0.0)
            # Negated, since every comparison with NaN is false.
            near = scalar.absolute(square - 1.0) <= tolerance
            bad = scalar.logical_or(bad, scalar.logical_not(near))
    for refusal, measure in zip(recipe.refusals, measures, strict=False):
        if scalar.literal(measure) is None:
            bad = scalar.logical_or(bad, refusal.tolerance[dtype] < measure)
    return None if bad is False else graph.condition(bad)
