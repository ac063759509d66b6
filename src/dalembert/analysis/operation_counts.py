"""Operation counts of the library's functions on a model, from their traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from dalembert.algorithms.open_tree import is_constrained, variable_parents
from dalembert.algorithms.sparse import factor_ltdl, solve_ltdl
from dalembert.compiler.library import FUNCTIONS, function
from dalembert.errors import ArgumentError, DalembertError, own_errors, whole_number
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Revolute
from dalembert.model.model import Model, require_model
from dalembert.model.topology import WORLD_NAME
from dalembert.models.random_trees import random_inertia, random_placement
from dalembert.tracing.program import ArrayArgument, OperationCount, count_operations
from dalembert.tracing.trace import trace

COUNTED: Final = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix", "bias_forces",
    "gravity_forces", "coriolis_forces", "coriolis_matrix", "inertial_forces", "constraint_jacobian",
    "constraint_bias", "constraint_forces", "forward_kinematics", "kinetic_energy", "potential_energy",
    "center_of_mass", "centroidal_momentum", "centroidal_momentum_matrix", "step",
)  # fmt: skip
"""The functions whose methods are listed, if the catalogue has them."""

LOOP_METHODS: Final = ("range_space", "direct", "null_space", "loop_closure", "sparse")
LOOP_FUNCTIONS: Final = ("constraint_jacobian", "constraint_bias", "constraint_forces")
"""Methods and functions for models with constraints, not listed for others."""

COSTLY_METHODS: Final = ("closed_form", "lagrange", "jacobians")
"""Methods of cubic and higher cost, which are written to be understood: counting them takes long, too."""

MAX_BODIES: Final = 10**6
"""This many bodies need gigabytes of memory."""


@final
@dataclass(frozen=True, slots=True)
class Counted:
    """The operation count of one method of a function on a model, or the reason why it has no count."""

    function: str
    method: str
    count: OperationCount | None
    reason: str = ""


@own_errors
def count_function(model: Model, name: str, method: str | None = None) -> OperationCount:
    """Count the operations total = m + a of one sample of a public function, as compiled.

    Multiplications include divisions, additions include subtractions, and a change of sign is free. The count
    is exact and needs no compilation; mimic joints and loops are included.

    Source: Featherstone 2008 section 10.3.

    >>> print(da.analysis.count_function(da.models.gu(6), "mass_matrix"))
    331 m + 281 a, 10 trigonometric
    """
    require_model(model)
    if name not in FUNCTIONS:
        raise ArgumentError(f'there is no function "{name}"; see da.analysis.count_methods')
    arrays = ("time",) if model.time_dependent and "time" in FUNCTIONS[name].optional else ()
    return function(model, name, method, arrays=arrays).operation_count


@own_errors
def count_methods(
    model: Model, names: Sequence[str] | None = None, *, skip: Sequence[str] = ()
) -> list[Counted]:
    """Count the operations total = m + a of every method of the dynamics functions, or of those named.

    A method that does not apply to the model has a reason instead of a count. `skip`: methods to leave out.

    Source: Featherstone 2008 section 10.3.

    >>> for found in da.analysis.count_methods(da.models.pendulum(), ["inverse_dynamics"])[:1]:
    ...     print(found.function, found.method, found.count)
    inverse_dynamics rnea 1 m + 1 a, 1 trigonometric
    """
    require_model(model)
    found = []
    for name in COUNTED if names is None else names:
        if name not in FUNCTIONS:
            if names is not None:
                raise ArgumentError(f'there is no function "{name}"; known: {", ".join(COUNTED)}')
            continue
        if name in LOOP_FUNCTIONS and not is_constrained(model):
            continue
        for method in FUNCTIONS[name].methods:
            if method in skip or (method in LOOP_METHODS and not is_constrained(model)):
                continue
            try:
                found.append(Counted(name, method, count_function(model, name, method)))
            except DalembertError as error:
                found.append(Counted(name, method, None, str(error)))
    return found


@own_errors
def factoring_count(model: Model) -> OperationCount:
    """Count the operations of M = L^T D L and one solve, with branch-induced sparsity (Table 6.6).

    Source: Featherstone 2008 section 6.5.

    >>> print(da.analysis.factoring_count(da.models.gu(6)))
    86 m (of which 21 divisions) + 65 a
    """
    require_model(model)
    lam = variable_parents(model)
    n = len(lam)

    def solve(H: Any, b: Any) -> Any:
        L, D = factor_ltdl(H, lam)
        return solve_ltdl(L, D, lam, b)

    return count_operations(trace(solve, [ArrayArgument("H", (n, n)), ArrayArgument("b", (n,))]).values)


@own_errors
def general_tree(parents: Sequence[int], *, name: str = "general_tree") -> Model:
    """Build GU(n) with branches: general revolute joints, parent(i) = parents[i], -1 for the world.

    Source: Featherstone 2008 section 10.3.

    >>> print(da.analysis.general_tree([-1, 0, 0]).parents)
    (-1, 0, 0)
    """
    builder = ModelBuilder(name=name)
    for i, parent in enumerate(parents):
        if not -1 <= parent < i:
            raise ArgumentError(f"parents[{i}] is {parent}; it must be -1 or an earlier body")
        builder.add_body(
            f"link{i + 1}",
            WORLD_NAME if parent < 0 else f"link{parent + 1}",
            Revolute((0.0, 0.0, 1.0)),
            placement=random_placement(3000 + i),
            inertia=random_inertia(2000 + i),
        )
    return builder.build()


@own_errors
def binary_tree(n: int) -> Model:
    """Build a binary tree of n general revolute joints: parent(i) = (i - 1) // 2, level by level.

    Source: Featherstone 2008 Figure 10.5.

    >>> print(da.analysis.binary_tree(7).parents)
    (-1, 0, 0, 1, 1, 2, 2)
    """
    count = whole_number("binary_tree: n", n, 1, MAX_BODIES)
    return general_tree([(i - 1) // 2 for i in range(count)], name=f"binary_tree{count}")
