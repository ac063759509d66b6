"""Inverse dynamics of systems with constraints (Featherstone 2008 section 8.12).

tau_ID, the forces that move the spanning tree alone, may be changed by any K^T lambda without changing the
motion. Of all tau = tau_ID - K^T lambda with zeros at joints that have no actuator the shortest is taken.
With P the orthogonal projector on the motions that the constraints allow, and u the actuated variables,

    P = 1 - K^T (K K^T)^+ K                                                      (1)
    P tau = P tau_ID              for G^T tau = G^T tau_ID, Eq. 8.62             (2)
    P_uu u = (P tau_ID)_u         the normal equations of (2) for tau = (u, 0)   (3)

P stands for the book's G, whose columns span the same motions, so that no independent variables need be
chosen. (2) has no solution if the actuators cannot produce the motion; what is then left of it is
`unreachable_share`. With an actuator at every joint u = P tau_ID.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Unpack

from dalembert.algorithms.aligned import original_model
from dalembert.algorithms.applied_forces import Conditions, Loads
from dalembert.algorithms.constraints import constraint_equations, loop_rows, stabilized_k
from dalembert.algorithms.declaration import CONSTRAINED_LOADS, public
from dalembert.algorithms.dense import (
    CANCELLATION_RATIO,
    Matrix,
    SymmetricFactor,
    dot,
    factor_semidefinite,
    largest,
    minimum_norm_solution,
    symmetric_product,
    times,
    total,
    unit,
)
from dalembert.algorithms.inverse_dynamics import joint_forces, spanning_tree_forces
from dalembert.algorithms.kinematics import body_motions, forward_kinematics
from dalembert.algorithms.loops.constrained_dynamics import (
    allowed_motions,
    constrained_forward_dynamics,
    constrained_system,
    row_scales,
)
from dalembert.algorithms.open_tree import is_constrained, velocity_places
from dalembert.errors import ModelError, ShapeError, require_choice
from dalembert.model.body import Loop
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time, absolute, is_zero, maximum
from dalembert.spatial import Force, Motion, Transform, Vec3

# The forces that constraints exert: lambda, and the spatial forces across loop joints.
#
# The constraint force, for any method that gave a, is what the motion lacks (Featherstone 2008 Eq. 8.34):
#
#     K^T lambda = M a + C - tau                                                   (1)
#     lambda = (K K^T)^+ K (M a + C - tau)                                         (2)
#
# Where constraints depend on each other many lambda fulfil (1), and (2) is the shortest. A loop joint pushes
# its successor with T lambda (Eqs 8.28 to 8.33), and its predecessor with the opposite.


@public("constraints", "q v tau", method="shortest", optional=CONSTRAINED_LOADS, frame_free=True)
def constraint_forces(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Conditions]
) -> list[Scalar]:
    """Return lambda `(…, nc)` of the constraint forces K^T lambda in the motion that tau produces.

    lambda solves M a + b = tau + J^T external + K^T lambda. The rows are those of `constraint_jacobian`: loop
    joints in order, then user constraints; in N for a distance, in N m for an angle. If constraints are
    redundant, many lambda give the same motion and this is the one of least norm. Featherstone 2008 Eqs 8.34
    to 8.41.

    >>> model = da.models.four_bar()
    >>> lam = da.constraints.constraint_forces(model, q=np.zeros(3), v=np.zeros(3), tau=np.zeros(3))
    >>> a = da.forward_dynamics(model, np.zeros(3), np.zeros(3), np.zeros(3))
    >>> K = da.constraints.constraint_jacobian(model, np.zeros(3))
    >>> lack = da.mass_matrix(model, np.zeros(3)) @ a + da.bias_forces(model, np.zeros(3), np.zeros(3))
    >>> print(np.allclose(K.T @ lam, lack))
    True
    """
    if not is_constrained(tree):
        raise ModelError("constraint_forces: the model has no loops or other constraints")
    system = constrained_system(tree, q, v, tau, **given)
    a = constrained_forward_dynamics(tree, q, v, tau, **given)
    lacking = [dot(row, a) - f for row, f in zip(system.M, system.force, strict=True)]  # (1)
    gram = factor_semidefinite(symmetric_product(system.K, system.K))
    return system.spread(minimum_norm_solution(gram, times(system.K, lacking)))  # (2)


@public("constraints", "q v tau", method="shortest", optional=CONSTRAINED_LOADS, frame_free=True)
def loop_forces(tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Conditions]) -> list[Force]:
    """Return f = T lambda of each loop joint `(…, n_loops, 6)` [N m, N]: moment and force on its successor.

    They are given in the successor's loop frame (`loop.placement_successor` on the successor body), for the
    motion that tau produces; the predecessor feels the opposite. If constraints are redundant, lambda is the
    one of least norm. Featherstone 2008 section 8.4.

    >>> model = da.models.four_bar()
    >>> f = da.constraints.loop_forces(model, q=np.zeros(3), v=np.zeros(3), tau=np.zeros(3))
    >>> print(f.shape, np.abs(f[0, [0, 1, 2, 4]]).max().round(12))  # no moments, nothing across the plane
    (1, 6) 0.0
    """
    if not tree.loop_names:
        raise ModelError("loop_forces: the model has no loop joints")
    lam = constraint_forces(tree, q, v, tau, **given)
    forces = []
    start = 0
    for loop in tree.loops:
        T = loop_rows(tree, loop, q, v, time=given.get("time")).T
        parts = zip(T, lam[start : start + len(T)], strict=True)
        forces.append(total((column * x for column, x in parts), Force.zero()))
        start += len(T)
    return forces


def gram_factor(K: Matrix) -> tuple[SymmetricFactor, Matrix]:
    """Return the factors of K K^T, its rows scaled to a largest entry of one, and the scaled K."""
    scales, _ = row_scales(K)
    scaled = [[x if is_zero(x) else x * s for x in row] for row, s in zip(K, scales, strict=True)]
    return factor_semidefinite(symmetric_product(scaled, scaled)), scaled


SMALLEST_FORCE = 1e-6
"""Forces [N or N m] below which a ratio to them is meaningless."""

SMALLEST_ACCELERATION = 1e-6
"""Accelerations [rad/s^2 or m/s^2] below which a ratio to them is meaningless."""


def constrained_inverse_dynamics(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Return the shortest tau `(nv,)`, zero without actuators, of a motion that keeps the constraints."""
    tau = spanning_tree_forces(tree, q, v, a, **given)
    return _actuated_forces(tree, q, v, tau, given.get("time"))[0]


def inverse_dynamics_by_null_space(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Return tau from G_u^T u = G^T tau_ID (Eq. 8.63), G of `allowed_motions`; checks the other method."""
    tau = spanning_tree_forces(tree, q, v, a, **given)
    equations = constraint_equations(tree, q, v, time=given.get("time"))
    n = tree.nv
    G = allowed_motions(equations.K, equations.k, n).G
    actuated = actuated_variables(tree)
    right = [dot([row[j] for row in G], tau) for j in range(n)]
    columns = [[G[u][j] for u in actuated] for j in range(n)]
    gram = [[dot(columns[i], columns[j]) for j in range(n)] for i in range(n)]
    y = factor_semidefinite(gram).solve(right)  # u = G_u y is the shortest of its kind
    result: list[Scalar] = [0.0] * n
    for u in actuated:
        result[u] = dot(G[u], y)
    return result


INVERSE_METHODS = {"projection": constrained_inverse_dynamics, "null_space": inverse_dynamics_by_null_space}
"""Every method for the forces of a constrained motion, by its name."""


def on_trees(algorithm: Callable[..., list[Scalar]], method: str) -> Callable[..., list[Scalar]]:
    """Restrict an algorithm of inverse dynamics to trees: systems with constraints raise an error."""

    def forces(tree: Tree, *args: Any, **given: Any) -> list[Scalar]:
        if is_constrained(tree):
            names = ", ".join(f'"{name}"' for name in INVERSE_METHODS)
            raise ModelError(
                f'inverse_dynamics: method="{method}" is for trees, and this model has constraints; use '
                f"one of {names}, or model.tree() for the spanning tree alone"
            )
        return algorithm(tree, *args, **given)

    return forces


def actuated_variables(tree: Tree) -> list[int]:
    """Return the places in v at which actuators act; those of coupled joints act on what they follow."""
    model = original_model(tree)
    names = set(model.actuated)
    places = {
        place
        for body in tree.bodies
        if body.joint_name in names
        for variable in velocity_places(body)
        for place, _ in variable
    }
    return sorted(places)


def constraint_violation(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Conditions]
) -> Scalar:
    """Return |K a - k| / (|K| |a| + |k|), of the largest elements and rows; zero without constraints."""
    if not is_constrained(tree):
        return 0.0
    equations = constraint_equations(tree, q, v, time=given.get("time"))
    right = stabilized_k(equations, given.get("stabilization"))
    worst: Scalar = 0.0
    row_size: Scalar = 0.0
    k_size: Scalar = SMALLEST_ACCELERATION
    for row, k in zip(equations.K, right, strict=True):
        entries = [x for x in row if not is_zero(x)]
        if entries:
            worst = maximum(worst, absolute(dot(row, a) - k))
            row_size = maximum(row_size, total(map(absolute, entries)))
            k_size = maximum(k_size, absolute(k))
    return worst / (row_size * largest(map(absolute, a)) + k_size)


def unreachable_share(tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]) -> Scalar:
    """Return the largest force that actuators cannot apply, relative to tau_ID; zero without constraints."""
    if not is_constrained(tree) or len(actuated_variables(tree)) == tree.nv:
        return 0.0
    tau = spanning_tree_forces(tree, q, v, a, **given)
    left = _actuated_forces(tree, q, v, tau, given.get("time"))[1]
    return largest(map(absolute, left)) / largest(map(absolute, tau), SMALLEST_FORCE)


def _actuated_forces(
    tree: Tree, q: Scalars, v: Scalars, tau_ID: Scalars, time: Time
) -> tuple[list[Scalar], list[Scalar]]:
    """Return tau, zero at joints without actuators, and P (tau_ID - tau), which should be zero."""
    n = tree.nv
    K = [row for row in constraint_equations(tree, q, v, time=time).K if not all(is_zero(x) for x in row)]
    factors, K = gram_factor(K)

    def project(x: Scalars) -> list[Scalar]:
        """Return P x, (1)."""
        lam = factors.solve([dot(row, x) for row in K])
        result = list(x)
        for row, y in zip(K, lam, strict=True):
            result = [r if is_zero(k) else r - k * y for r, k in zip(result, row, strict=True)]
        return result

    along = project(tau_ID)
    actuated = actuated_variables(tree)
    if len(actuated) == n:
        return along, [0.0] * n
    columns = {j: project(unit(n, j)) for j in actuated}
    P_uu = [[columns[max(i, j)][min(i, j)] for j in actuated] for i in actuated]
    factors_u = factor_semidefinite(P_uu, least=CANCELLATION_RATIO)  # P is near one, and so are its errors
    u = minimum_norm_solution(factors_u, [along[i] for i in actuated])  # (3)
    tau: list[Scalar] = [0.0] * n
    left = list(along)
    for i, u_i in zip(actuated, u, strict=True):
        tau[i] = u_i
        left = [x - u_i * p for x, p in zip(left, columns[i], strict=True)]
    return tau, left


# Active forces at loop joints: springs, dampers and motors that are not part of the tree.
#
#     f_k^a = T_k^a tau_k          in the successor frame of loop joint k                 (section 8.4)
#     tau^a = sum over loops of J_L^T f_k^a                                               (8.28)
#
# Seen from the tree they are external forces, +f_k^a on the successor and -f_k^a on the predecessor, so that
# every function that takes external forces takes them. Table 8.3 subtracts them inside the recursive
# Newton-Euler algorithm; its last line must read f_lambda(i) = f_lambda(i) + ..., and a body that is the
# world takes no force. Where every loop joint is passive nothing is computed.

LoopTorques = Mapping[str, Scalars]
"""tau_k (nv of the loop joint) [N m or N] of loop joints by name; those not named are passive."""


class LoopState(NamedTuple):
    """The q (nq) and v (nv) of a loop joint, as if it were a tree joint."""

    q: list[Scalar]
    v: list[Scalar]


class BiasWithLoopForces(NamedTuple):
    """C' = C - tau^a (nv), and a_i^vp of every body in its own coordinates, gravity left out."""

    bias: list[Scalar]
    accelerations: PerBody[Motion]


def loop_state(tree: Tree, loop: Loop, q: Scalars, v: Scalars, *, time: Time = None) -> LoopState:
    """Return the loop joint's own q_J at the placement X and v_J = T_a^T (v_s - v_p - sigma)."""
    joint = loop.joint
    rows = loop_rows(tree, loop, q, v, time=time)
    own = joint.position_of(rows.X, time)
    relative = rows.velocity
    if joint.time_dependent:
        relative = relative - joint.velocity(own, [0.0] * joint.nv, time)
    return LoopState(own, [relative.dot(force) for force in joint.active_subspace(own, time)])


def loop_active_forces(tree: Tree, q: Scalars, tau: LoopTorques, *, time: Time = None) -> list[Force]:
    """Return the external force on each body, in body coordinates, that active loop joints exert (Eq. 8.28).

    Of a model, hand it to any function as `external_forces`. `tau`: by the loop joint's name, nv numbers.
    """
    forces: list[Force] = [Force.zero() for _ in tree.bodies]
    active = _active(tree, tau)
    if not active:
        return forces
    poses = forward_kinematics(tree, q, time=time)
    for loop, torques in active:
        ends = (loop.predecessor, loop.successor)
        X_p, X_s = (Transform.identity() if body < 0 else poses[body] for body in ends)
        X = (X_p @ loop.placement_predecessor).inverse() @ X_s @ loop.placement_successor
        T_a = loop.joint.active_subspace(loop.joint.position_of(X, time), time)
        f = total((column * torque for column, torque in zip(T_a, torques, strict=True)), Force.zero())
        at_s = loop.placement_successor.inverse_apply(f)
        if loop.successor >= 0:
            forces[loop.successor] = forces[loop.successor] + at_s
        if loop.predecessor >= 0:
            at_p = X_p.apply(X_s.inverse_apply(at_s))
            forces[loop.predecessor] = forces[loop.predecessor] - at_p
    return forces


def loop_active_torques(tree: Tree, q: Scalars, tau: LoopTorques, *, time: Time = None) -> list[Scalar]:
    """Return tau^a = sum of J_L^T f_k^a (nv) [N m or N] (Eq. 8.28)."""
    return joint_forces(tree, q, PerBody(loop_active_forces(tree, q, tau, time=time)), time=time)


def bias_with_loop_forces(
    tree: Tree, q: Scalars, v: Scalars, tau: LoopTorques, *, time: Time = None
) -> BiasWithLoopForces:
    """Return C - tau^a and a_i^vp: the recursive Newton-Euler algorithm of Tables 8.2 and 8.3."""
    motions = body_motions(tree, q, v, time=time)
    active = loop_active_forces(tree, q, tau, time=time)
    a_0 = Motion(Vec3.zero(), -tree.gravity)
    forces = []
    for body, (pose, v_i, a_i), f_a in zip(tree.bodies, motions, active, strict=True):
        f_B = body.inertia * (a_i + pose.apply(a_0)) + v_i.cross(body.inertia * v_i)
        forces.append(f_B - f_a)
    accelerations = PerBody([motion.acceleration for motion in motions])
    return BiasWithLoopForces(joint_forces(tree, q, PerBody(forces), time=time), accelerations)


def _active(tree: Tree, tau: LoopTorques) -> list[tuple[Loop, Scalars]]:
    """Return the loop joints that are not passive, with their forces."""
    known = {loop.name: loop for loop in tree.loops}
    found = []
    for name, torques in tau.items():
        require_choice("loop joint", name, known)
        if len(torques) != known[name].joint.nv:
            raise ShapeError(
                f'loop joint "{name}" has {known[name].joint.nv} freedoms, {len(torques)} forces were given'
            )
        if len(torques) > 0:
            found.append((known[name], torques))
    return found
