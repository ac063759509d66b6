"""Numerical errors of the dynamics: condition numbers, far frames, rounding (Featherstone 2008 sections 10.1
and 10.2).

Accelerations a = M^-1 (tau - b) amplify relative errors of the forces by up to cond(M); a frame far from the
body amplifies rounding by the square of its distance; and each algorithm rounds in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from dalembert import algorithms
from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.constraints import constraint_equations
from dalembert.algorithms.open_tree import is_constrained, require_open_tree
from dalembert.call.arguments import as_array
from dalembert.errors import ArgumentError, ShapeError, own_errors, require_choice, whole_number
from dalembert.model.model import Model, require_model
from dalembert.spatial import Force, Motion, RigidInertia, Vec3
from dalembert.spatial.matrices import crf, mcI, xlt

Array = npt.NDArray[np.float64]


def instant(time: float | None, function: str) -> float | None:
    """Return a time [s] as one finite number; None stays None."""
    if time is None:
        return None
    at = as_array("time", time, ())
    if at.ndim or not np.isfinite(at):
        raise ArgumentError(f"{function}: time is {time!r}; give one finite number [s]")
    return float(at)


def configurations(model: Model, q: npt.ArrayLike | None, function: str) -> Array:
    """Return q `(…, nq)` as finite float64 numbers; None gives the neutral configuration."""
    require_model(model)
    if q is None:
        return model.neutral()
    at: Array = as_array("q", q, (model.nq,), follow=True).astype(np.float64)
    if not np.isfinite(at).all():
        raise ArgumentError(f"{function}: q holds a number that is not finite")
    return at


def one_configuration(model: Model, q: npt.ArrayLike | None, function: str) -> Array:
    """Return one configuration q `(nq,)` as finite float64 numbers; None gives the neutral one."""
    at = configurations(model, q, function)
    if at.ndim != 1:
        raise ShapeError(f"{function} takes one configuration ({model.nq},), q has shape {at.shape}")
    return at


RANK_TOLERANCE = 1e-9
"""Relative singular value of K below which equations count as dependent."""


@own_errors
def condition_number(model: Model, q: npt.ArrayLike | None = None, *, scaled: bool = False) -> Any:
    """Compute cond(M(q)) = the largest over the least eigenvalue of the mass matrix: `(…,)` for q `(…, nq)`.

    The result is a float for one q (default: neutral). It is the largest factor by which relative errors of
    the forces grow in the accelerations. It depends on units if rotations and translations mix; `scaled`
    divides rows and columns by the roots of the diagonal first, which removes the units. With closed loops M
    is restricted to the motions that the loops allow.

    A chain of N equal links has about 4 N^4 in the worst case, stretched out; branched trees of the same
    bodies have less, since the number grows with depth. So choose the spanning tree of a mechanism with loops
    as shallow as possible: cut each loop at the joint farthest from the base.

    Source: Featherstone 2008 section 10.2.

    >>> model = da.models.double_pendulum()
    >>> print(da.analysis.condition_number(model, [[0.0, 0.0], [0.0, 2.0]]).round(1))
    [34.   3.2]
    """
    require_model(model)
    M = constrained_inertia(model, q) if model.nv else np.zeros((0, 0))
    if M.shape[-1] == 0:
        raise ArgumentError(f'"{model.name}" has no velocity variables that are free to move')
    if scaled:
        d = np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))
        d = np.where(d > 0.0, d, 1.0)
        M = M / (d[..., :, None] * d[..., None, :])
    eigenvalues = np.linalg.eigvalsh(M)
    least = eigenvalues[..., 0]
    with np.errstate(divide="ignore"):
        condition = np.where(least > 0.0, eigenvalues[..., -1] / least, np.inf)
    return float(condition) if condition.ndim == 0 else condition


@own_errors
def chain_condition_estimate(links: int) -> float:
    """Return 4 N^4, an estimate of the worst condition number of a chain of N equal links.

    Source: Featherstone 2008 section 10.2.

    >>> da.analysis.chain_condition_estimate(10)
    40000.0
    """
    return 4.0 * float(links) ** 4


@final
@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The response of a system to slightly wrong forces.

    `desired` and `response`: accelerations (nv,) under the forces `tau` and `applied`; `force_error` and
    `acceleration_error`: the largest relative deviation of an entry; `amplification`: `acceleration_error`
    over `force_error`; `condition`: cond(M).
    """

    tau: Array
    applied: Array
    desired: Array
    response: Array
    force_error: float
    acceleration_error: float
    amplification: float
    condition: float


@own_errors
def sensitivity(
    model: Model,
    q: npt.ArrayLike,
    tau: npt.ArrayLike,
    *,
    v: npt.ArrayLike | None = None,
    applied: npt.ArrayLike | None = None,
    figures: int = 3,
    time: float | None = None,
) -> Sensitivity:
    """Solve a = M^-1 (tau - b) for intended and applied forces, and compare their relative errors.

    `tau` (nv,): the intended forces [N m or N]; `applied`: the forces that act, by default tau rounded to
    `figures` significant figures, as by imperfect motors; q (nq,); v (nv,), by default 0. Entries whose
    reference is zero are left out of the relative deviations. `time` [s]: for models with time-dependent
    joints. For models without loops.

    Source: Featherstone 2008 section 10.2.

    >>> model = da.models.double_pendulum()
    >>> found = da.analysis.sensitivity(model, [0.0, 0.1], [21.234, 8.3456], figures=2)
    >>> print(f"{100 * found.force_error:.1f} % -> {100 * found.acceleration_error:.0f} %")
    1.1 % -> 7 %
    """
    require_model(model)
    require_open_tree(model, "sensitivity")
    position, forces = _vector(q, model.nq, "q"), _vector(tau, model.nv, "tau")
    speed = np.zeros(model.nv) if v is None else _vector(v, model.nv, "v")
    rounded = [float(f"{x:.{figures}g}") for x in forces] if applied is None else applied
    acting = _vector(rounded, model.nv, "applied")
    clock = instant(time, "sensitivity")
    M = np.array(algorithms.mass_matrix(model, position.tolist(), time=clock), dtype=np.float64)
    b = np.array(algorithms.bias_forces(model, position.tolist(), speed.tolist(), time=clock))
    desired, response = np.linalg.solve(M, forces - b), np.linalg.solve(M, acting - b)
    force_error, acceleration_error = _deviation(forces, acting), _deviation(desired, response)
    amplification = acceleration_error / force_error if force_error else np.nan
    errors = force_error, acceleration_error, amplification, float(np.linalg.cond(M))
    return Sensitivity(forces, acting, desired, response, *errors)


def constrained_inertia(model: Model, q: npt.ArrayLike | None = None) -> Array:
    """Return M(q) `(…, nv, nv)`; with loops N^T M N, with N an orthonormal basis of K v = 0."""
    positions = configurations(model, q, "condition_number")
    time = 0.0 if model.time_dependent else None
    entries = list(np.moveaxis(positions, -1, 0))
    rows = algorithms.mass_matrix(model, entries, time=time)
    shape = positions.shape[:-1]
    stacked = np.array([[np.broadcast_to(x, shape) for x in row] for row in rows], dtype=np.float64)
    M = np.moveaxis(stacked, (0, 1), (-2, -1))
    if not is_constrained(model):
        return M
    reduced = []
    for sample, full in zip(positions.reshape(-1, model.nq), M.reshape(-1, model.nv, model.nv)):
        _, singular, V = np.linalg.svd(constraint_matrix(model, sample))
        N = V[int((singular > RANK_TOLERANCE * singular.max(initial=0.0)).sum()) :].T
        reduced.append(N.T @ full @ N)
    if len({matrix.shape for matrix in reduced}) > 1:
        raise ArgumentError("the loops allow different numbers of motions at these q; ask for one at a time")
    return np.array(reduced).reshape(*positions.shape[:-1], *reduced[0].shape)


def constraint_matrix(model: Model, q: Array, time: float | None = None) -> Array:
    """Return K(q) (nc, nv) at one configuration and one time, by default 0."""
    if time is None and model.time_dependent:
        time = 0.0
    K = constraint_equations(model, q.tolist(), [0.0] * model.nv, time=time).K
    return np.array(K, dtype=np.float64).reshape(len(K), model.nv)


def _vector(given: npt.ArrayLike, size: int, name: str) -> Array:
    array: Array = as_array(name, given, (size,), follow=True).astype(np.float64)
    if array.ndim != 1:
        raise ShapeError(f"{name} has shape {array.shape}; expected ({size},)")
    return array


def _deviation(reference: Array, found: Array) -> float:
    kept = reference != 0.0
    return float((np.abs(found - reference)[kept] / np.abs(reference[kept])).max(initial=0.0))


UNIT_BODY: Final = RigidInertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
"""Mass and all radii of gyration are one."""
UNIT_SPIN: Final = Motion(Vec3(0.0, 0.0, 1.0), Vec3.zero())
"""A unit rotation about the centre of mass."""
EXAMPLE_FORCE: Final = Force(Vec3(0.0, 0.0, 1.0), Vec3(-1.0, 1.0, 0.0))
"""Magnitude sqrt(2), through the point (1/2, 1/2) seen from the centre of mass."""


@final
@dataclass(frozen=True, slots=True)
class FarFrameError:
    """The error of an acceleration computed in a far frame.

    `distance` from the frame to the centre of mass in radii of gyration; `condition` of the inertia in that
    frame; `acceleration` (6,) as computed there; `error`, the largest entry of its deviation from the exact
    acceleration, evaluated at the centre of mass.
    """

    distance: float
    condition: float
    acceleration: Array
    error: float


@own_errors
def far_frame_error(
    offset: npt.ArrayLike,
    *,
    inertia: RigidInertia = UNIT_BODY,
    velocity: Motion = UNIT_SPIN,
    force: Force = EXAMPLE_FORCE,
    dtype: str = "float64",
) -> FarFrameError:
    """Solve I_O a_O = f_O - v_O x* I_O v_O for a_O in a frame far from the body, and return its error.

    `offset` (3,) or, in the plane, (2,) [m]: the position of the centre of mass in the frame O. `inertia` of
    the body; `velocity` and `force`, angular first, at its centre of mass C and along the frame's axes
    [rad/s, m/s; N m, N]. All arithmetic is in `dtype`, with an error of about eps cond(I_O), where cond(I_O)
    is about |c|^4. The exact a_C comes from the equation at C, where it separates into Newton's and Euler's
    equations.

    The error is constant while |c| is below the radius of gyration and grows with |c|^2 beyond it: keep body
    frames within one or two radii of gyration of the centre of mass.

    Source: Featherstone 2008 section 10.1, Eq. 10.1 and Figure 10.2.

    >>> found = da.analysis.far_frame_error((100.0, 10.0))
    >>> print(f"{found.condition:.3g}, {found.distance:.1f} radii, six digits lost: {found.error > 1e-13}")
    1.02e+08, 100.5 radii, six digits lost: True
    """
    number = np.dtype(dtype).type
    given = [float(x) for x in np.ravel(np.asarray(offset, dtype=np.float64))]
    if len(given) not in (2, 3):
        raise ArgumentError(f"offset has {len(given)} entries; give (x, y, z), or (x, y) for the plane")
    c = [number(x) for x in (*given, 0.0)[:3]]
    about_com = inertia.inertia_at_com.to_list()
    I_C = np.array(mcI(inertia.mass, (0.0, 0.0, 0.0), about_com), float)
    v_C, f_C = np.array(velocity.to_list(), float), np.array(force.to_list(), float)
    exact = np.linalg.solve(I_C, f_C - np.array(crf(velocity.to_list()), float) @ I_C @ v_C)

    # From C to O, whose position seen from C is -c: v_O = X v_C, f_O = X^-T f_C.
    X = np.array(xlt([-x for x in c]), dtype)
    v_O = X @ v_C.astype(dtype)
    f_O = np.array(xlt(c), dtype).T @ f_C.astype(dtype)
    I_O = np.array(mcI(number(inertia.mass), c, np.array(about_com, dtype).tolist()), dtype)
    a_O = np.linalg.solve(I_O, f_O - np.array(crf(v_O.tolist()), dtype) @ (I_O @ v_O))
    back = np.asarray(xlt(c), dtype=np.longdouble) @ a_O.astype(np.longdouble)
    radius = radius_of_gyration(inertia)
    return FarFrameError(
        distance=float(np.linalg.norm(given)) / radius if radius else np.inf,
        condition=float(np.linalg.cond(I_O.astype(np.float64))),
        acceleration=a_O.astype(np.float64),
        error=float(np.abs(back - exact).max()),
    )


def radius_of_gyration(inertia: RigidInertia) -> float:
    """Return sqrt(greatest moment about the centre of mass / mass) [m]; zero for particles, massless bodies
    and moments that are not finite.
    """
    mass, about_com = float(inertia.mass), np.array(inertia.inertia_at_com.to_list(), float)
    if mass <= 0.0 or not np.isfinite(about_com).all():
        return 0.0
    return float(np.sqrt(max(np.linalg.eigvalsh(about_com)[-1], 0.0) / mass))


METHODS: dict[str, Callable[..., Any]] = {
    "rnea": algorithms.inverse_dynamics,
    "aba": algorithms.forward_dynamics,
    "crba": algorithms.forward_dynamics_by_matrix,
    "rnea_spatial": lambda *arguments, **clock: algorithms.rnea_spatial(*arguments, **clock).tau,
    "aba_spatial": algorithms.forward_dynamics_spatial,
}
"""The algorithms whose rounding can be measured; each takes q, v, and a or tau."""

MAX_SAMPLES: Final = 10**6
"""More samples do not improve the median."""
MAX_SEED: Final = 2**128 - 1
"""NumPy's generators use 128 bits of a seed."""


@final
@dataclass(frozen=True, slots=True)
class RoundOff:
    """The rounding error of a method in a float type.

    `error`: the median over samples of max|x - x_exact| / max|x_exact|; `digits`: the number of correct
    figures of the largest entries.
    """

    method: str
    dtype: str
    error: float

    @property
    def digits(self) -> float:
        """The number -log10(error) of correct digits."""
        return float(-np.log10(self.error)) if self.error else float("inf")


@own_errors
def round_off(
    model: Model,
    *,
    methods: Sequence[str] = ("rnea", "aba", "crba"),
    dtypes: Sequence[str] = ("float64", "float32"),
    samples: int = 20,
    seed: int = 0,
    frames: Literal["aligned", "model"] = "aligned",
    time: float | None = None,
) -> list[RoundOff]:
    """Measure error = max|x - x_exact| / max|x_exact| of the dynamics, by method and float type.

    x is tau for "rnea" and "rnea_spatial", and the accelerations for "aba", "crba" (mass matrix, factors,
    solve) and "aba_spatial"; x_exact comes from the same model in extended precision, which the machine must
    support. States are drawn within the limits; velocities and forces (or accelerations) are random.
    `frames`: "aligned", which the compiled functions use, or "model". Each entry is one NumPy array over all
    samples, so that nothing is compiled. `time` [s]: for models with time-dependent joints. For trees.

    Source: Featherstone 2008 section 10.1: the three algorithms stay accurate for thousands of bodies, and
    the articulated-body algorithm is the more accurate of the two for forward dynamics.

    >>> for found in da.analysis.round_off(da.models.gu(12), methods=("aba", "crba")):
    ...     print(f"{found.method:5}{found.dtype}: {found.digits:.0f} digits")
    aba  float64: 16 digits
    aba  float32: 7 digits
    crba float64: 15 digits
    crba float32: 6 digits
    """
    require_model(model)
    if np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        raise ArgumentError("round_off needs extended precision (numpy.longdouble), which this machine lacks")
    for method in methods:
        require_choice("method of round_off", method, METHODS)
    require_choice("frames of round_off", frames, ("aligned", "model"))
    tree = aligned(model) if frames == "aligned" else model
    samples = whole_number("round_off: samples", samples, 1, MAX_SAMPLES)
    seed = whole_number("round_off: seed", seed, 0, MAX_SEED)
    rng = np.random.default_rng(seed)
    q = np.array([model.random_state(rng)[0] for _ in range(samples)]).T
    v, tau = rng.standard_normal((2, model.nv, samples))
    state = [x.astype(np.float32) for x in (q, v, 5.0 * tau)]  # which every float type represents exactly
    at = instant(time, "round_off")
    clock = {} if at is None else {"time": np.full(samples, at, np.float32)}

    def evaluate(method: str, dtype: str) -> Any:
        arguments = [list(x.astype(dtype)) for x in state]
        entries = METHODS[method](tree, *arguments, **{name: x.astype(dtype) for name, x in clock.items()})
        return np.array([np.broadcast_to(x, samples) for x in entries], dtype=np.longdouble)

    found = []
    for method in methods:
        exact = evaluate(method, "longdouble")
        size = np.abs(exact).max(axis=0)
        for dtype in dtypes:
            difference = np.abs(evaluate(method, dtype) - exact).max(axis=0)
            found.append(RoundOff(method, dtype, float(np.median(difference / size))))
    return found
