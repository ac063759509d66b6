"""Dynamically equivalent models with simpler inertias (Featherstone 2008 section 9.7).

An inertia I_D may be moved from a body to its parent without any effect on the equation of motion if it
changes neither kinetic energy nor weight, for all joint positions and motions of the parent:

    I_D S = 0,     d/dq_k (X_J^T I_D X_J) = 0,  that is  S_k x* I_D - I_D S_k x = 0,     for all q       (1)

(Eq. 9.30; its third condition follows from these two.) For a parent that never moves the conditions are
weaker, since then v = S q' and only the weight comes from outside, for gravity of any direction:

    S^T I_D S = 0,     S^T I_D (0, e) = 0 for the three directions e,                   for all q       (2)

and I_D is dropped. Both are linear in the ten parameters of I_D: their solutions are found numerically from S
at some positions, which covers every joint type. For revolute, prismatic and spherical joints they are Table
9.7.

`simplify_inertias` sweeps from the leaves to the root, at each joint making as many parameters zero as (1) or
(2) allow. Internally, parameters are the moments of the mass distribution of order zero, one and two,

    m,   h = integral r dm,   J = integral r r^T dm = tr(I)/2 - I

because `RigidInertia.force_of` multiplies these, and because a line of particles on a joint axis n, which is
what (1) finds for a revolute joint, has J along n n^T alone: one zero more, in every frame on that axis.
`parameters="inertia"` counts zeros in m, h and I instead, as the book does.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, require_choice
from dalembert.model.joints import Cylindrical, Helical, Joint, Prismatic, Revolute
from dalembert.model.tree import Tree
from dalembert.model.values import rebuilt
from dalembert.spatial import Motion, RigidInertia, SymMat3, Transform, Vec3, physical_problems

if TYPE_CHECKING:
    from dalembert.model.model import Model

Array = npt.NDArray[np.float64]

PARAMETERS = ("second_moments", "inertia")

POSITION_SAMPLES = 6
"""Random positions of a joint at which the conditions are evaluated, beside the neutral one."""

ROUNDING_TOLERANCE = 1e-9
"""Relative size below which a number from the conditions is a rounding error."""

ELIMINATION_ORDER = (0, 3, 2, 1, 6, 5, 4, 7, 8, 9)
"""Order in which parameters are made zero: the mass, h_z to h_x, moments about z, y and x, products."""


def simplify_inertias(
    model: Model, *, parameters: Literal["second_moments", "inertia"] = "second_moments"
) -> Model:
    """Return an equivalent, cheaper model: I_i - I_D for I_i and I_parent + X^T I_D X for its parent's.

    The result has the same `mass_matrix`, `bias_forces`, `inverse_dynamics` and `forward_dynamics`, also with
    external forces, and the same kinetic energy; potential energy differs by a constant. Total mass, centre
    of mass and momentum change only by the inertia taken from bodies on the world, which is dropped; a Free
    root keeps all. Constraint forces inside joints change, and so does the inertia of each body: many become
    non-physical (listed in `report`), so that methods that invert the inertia of a single body reject them.
    As many of m, h and J = tr(I)/2 - I (`parameters="second_moments"`, best for `inverse_dynamics`) or of m,
    h and I ("inertia", best for `mass_matrix` and `forward_dynamics`) become zero as the joints allow.
    Featherstone 2008 section 9.7.

    >>> model = da.models.gu(6)
    >>> simple = da.identification.simplify_inertias(model)
    >>> q, v = model.random_state(0)
    >>> bool(abs(da.mass_matrix(simple, q) - da.mass_matrix(model, q)).max() < 1e-12)
    True
    >>> count = lambda model: da.compile(da.inverse_dynamics, model).operation_count
    >>> count(simple).total < count(model).total
    True
    """
    if not isinstance(model, Tree):
        raise ArgumentError(f"simplify_inertias takes a Model, got {type(model).__name__}")
    require_choice("kind of inertia parameters", parameters, PARAMETERS)
    inertias = [body.inertia for body in model.bodies]
    resting = {-1}  # the bodies that never move: no joint between them and the world has a freedom
    for body in model.bodies:
        if body.nv == 0 and not body.joint.time_dependent and body.parent in resting:
            resting.add(body.index)
    for body in reversed(model.bodies):
        if body.joint.time_dependent:
            continue
        on_world = body.parent in resting
        inertias[body.index], part = _split(body.joint, inertias[body.index], on_world, parameters)
        if not on_world:
            X = body.placement.as_transform() @ body.joint.transform(body.joint.neutral())
            inertias[body.parent] = inertias[body.parent] + X.inverse_apply(part)
    bodies, report = [], list(model.report)
    for body, inertia in zip(model.bodies, inertias, strict=True):
        bodies.append(dataclasses.replace(body, inertia=inertia))
        problems = "; ".join(physical_problems(inertia))
        if problems:
            report.append(
                f'body "{body.name}": simplified, its inertia is that of no body ({problems}); the dynamics '
                "of the system are unchanged, methods that invert it are not for it"
            )
    return rebuilt(model, bodies=bodies, report=report)


def exchangeable_inertias(joint: Joint, *, on_world: bool = False) -> list[RigidInertia]:
    """Return a basis of all I_D, in the successor frame, that satisfy (1), or (2) for a parent on the world.

    Joints that depend on time have none.
    """
    if joint.time_dependent:
        return []
    return [_inertia(column) for column in _family(joint, on_world, Transform.identity(), np.eye(10))[0].T]


def augmented_inertias(model: Model, *, every_joint: bool = False) -> list[RigidInertia]:
    """Return the inertias of augmented bodies: each joint of a body carries a particle of the mass beyond it.

    The particle of the joint to body j has the mass of everything that j supports and is at the joint's
    predecessor frame; with `every_joint` there is also one at the body's own joint, with the mass of
    everything that is not beyond it. The mass of an augmented body is that of its subtree, or of the whole
    system. The theory is for chains of revolute and spherical joints and is kept for comparison:
    `simplify_inertias` achieves more. Featherstone 2008 section 9.7, end.
    """
    beyond: list[float] = [float(body.inertia.mass) for body in model.bodies]
    for body in reversed(model.bodies):
        if body.parent >= 0:
            beyond[body.parent] += beyond[body.index]
    total = sum(float(body.inertia.mass) for body in model.bodies)
    augmented = [body.inertia for body in model.bodies]
    for body in model.bodies:
        if every_joint:
            rest = RigidInertia(total - beyond[body.index], (0.0, 0.0, 0.0), SymMat3.zero())
            augmented[body.index] = augmented[body.index] + rest
        if body.parent >= 0:
            particle = RigidInertia(beyond[body.index], body.placement.as_transform().p, SymMat3.zero())
            augmented[body.parent] = augmented[body.parent] + particle
    return augmented


# the ten parameters (m, h_x, h_y, h_z, then xx, yy, zz, xy, xz, yz of I or J) as columns of numbers


def _inertia(numbers: Array) -> RigidInertia:
    m, x, y, z, *moments = (float(number) for number in numbers)
    return RigidInertia.from_compact(m, Vec3(x, y, z), SymMat3(*moments))


def _split(
    joint: Joint, inertia: RigidInertia, on_world: bool, parameters: str
) -> tuple[RigidInertia, RigidInertia]:
    """Return (I - I_D, I_D) with most zeros in I - I_D, in a frame whose z is the joint axis."""
    frame = _frame_on_axis(joint)
    C = np.eye(10)
    if parameters == "second_moments":  # C maps (m, h, I) to (m, h, J), J = tr(I)/2 - I
        C[4:7, 4:7] = 0.5 - np.eye(3)
        C[7:, 7:] = -np.eye(3)
    family, zeros = _family(joint, on_world, frame, C)
    y = C @ np.array([float(x) for x in frame.apply(inertia).leaves()])
    part = family @ y[zeros]
    rest = y - part
    rest[zeros] = 0.0
    rest[np.abs(rest) <= ROUNDING_TOLERANCE**2 * np.abs(y).max(initial=0.0)] = 0.0
    back = np.linalg.inv(C)
    return frame.inverse_apply(_inertia(back @ rest)), frame.inverse_apply(_inertia(back @ part))


def _frame_on_axis(joint: Joint) -> Transform:
    """Return a frame at the joint's origin whose z is its axis; the identity if it has no axis.

    Of coordinate axes the others follow in turn, so that no number is rounded.
    """
    if not isinstance(joint, (Revolute, Prismatic, Helical, Cylindrical)):
        return Transform.identity()
    z = np.array([float(x) for x in joint.axis.to_list()])
    k = int(np.argmax(np.abs(z)))
    x = np.roll(np.eye(3)[k], 1)
    x = x - z * (x @ z)
    x = x / np.linalg.norm(x)
    R = np.array([x, np.cross(z, x), z]).T
    return Transform.from_rotation_translation((R + 0.0).tolist(), (0.0, 0.0, 0.0))


def _conditions(joint: Joint, on_world: bool, frame: Transform) -> Array:
    """Return the rows of (1) or (2) as a matrix that multiplies the ten parameters in `frame`."""
    rng = np.random.default_rng(9)
    positions = [joint.neutral(), *(joint.random(rng) for _ in range(POSITION_SAMPLES if joint.nq else 0))]
    units = [_inertia(column) for column in np.eye(10)]
    matrices: list[Array] = [np.array(unit.matrix()) for unit in units]
    weights = [Motion(Vec3.zero(), Vec3.unit(k)) for k in range(3)]
    rows: list[Array] = []
    for q in positions:
        S = [frame.apply(s) for s in joint.subspace(q)]
        for s in S:
            pushed = [unit * s for unit in units]
            if on_world:
                rows += [np.array([t.dot(f) for f in pushed]) for t in (*S, *weights)]
            else:
                rows += list(np.array([f.to_list() for f in pushed]).T)
                # The matrix of s x on motions; minus its transpose is s x* on forces.
                cross = np.array([s.cross(Motion.of(unit)).to_list() for unit in np.eye(6).tolist()]).T
                rates = [-cross.T @ matrix - matrix @ cross for matrix in matrices]
                rows += list(np.array(rates).reshape(10, 36).T)
    return np.array(rows, dtype=np.float64).reshape(-1, 10)


def _family(joint: Joint, on_world: bool, frame: Transform, C: Array) -> tuple[Array, list[int]]:
    """Return the solutions of (1) or (2) as columns, in the parameters C (m, h, I), and a parameter each.

    A column is one in its own parameter and zero in those of the others: it serves to make that one zero.
    """
    A = _conditions(joint, on_world, frame) @ np.linalg.inv(C)
    _, sizes, directions = np.linalg.svd(np.linalg.qr(np.concatenate([A, np.zeros((10, 10))]), mode="r"))
    rank = int(np.sum(sizes > ROUNDING_TOLERANCE * max(sizes.max(), 1.0)))
    B = directions[rank:].T.copy()
    zeros: list[int] = []
    for row in ELIMINATION_ORDER:
        done = len(zeros)
        if done == B.shape[1]:
            break
        k = done + int(np.argmax(np.abs(B[row, done:])))
        if abs(B[row, k]) <= ROUNDING_TOLERANCE:
            continue
        B[:, [done, k]] = B[:, [k, done]]
        B[:, done] /= B[row, done]
        for other in range(B.shape[1]):
            if other != done:
                B[:, other] -= B[row, other] * B[:, done]
        zeros.append(row)
    whole = np.round(B) + 0.0
    return np.where(np.abs(B - whole) < ROUNDING_TOLERANCE, whole, B), zeros
