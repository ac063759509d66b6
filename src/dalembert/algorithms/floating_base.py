"""Floating-base systems (Featherstone 2008 sections 9.3 to 9.5)."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Unpack

from dalembert.algorithms.applied_forces import Loads, body_forces
from dalembert.algorithms.articulated import spatial_velocity_products
from dalembert.algorithms.clusters import articulated_accelerations
from dalembert.algorithms.declaration import JACOBIAN, LOADS, choice, public
from dalembert.algorithms.dense import Matrix, dot, total
from dalembert.algorithms.forward_dynamics import forward_dynamics_by_matrix
from dalembert.algorithms.inverse_dynamics import required_forces
from dalembert.algorithms.jacobians import Place, jacobian
from dalembert.algorithms.mass_matrix import composite_inertias, mass_matrix
from dalembert.algorithms.open_tree import require_moving_mass, require_open_tree
from dalembert.errors import ModelError, require_choice
from dalembert.model.body import Body
from dalembert.model.joints import Free
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, Time, is_zero
from dalembert.spatial import Force, Motion, RigidInertia, Vec3

# A floating base: one body with a Free joint carries all others (Featherstone 2008 §9.3).
#
# The base is body 0 of the tree. Its velocity v_0, its acceleration a_0 and the force on it are the first six
# entries of v, a and tau, in base coordinates, since a Free joint has S = 1; what follows are the joints'.

BASE_VARIABLES = 6


def floating_base(tree: Tree, function: str) -> Body:
    """Return the body that floats; raise if the tree hangs on the world or has loops."""
    require_open_tree(tree, function)
    root = tree.bodies[0]
    others = [body for body in tree.bodies[1:] if body.parent < 0]
    if not isinstance(root.joint, Free) or others:
        body = root if not isinstance(root.joint, Free) else others[0]
        raise ModelError(
            f'{function}: body "{body.name}" hangs on the world by joint "{body.joint_name}", and this '
            "function is for systems that hang on nothing: one body with a Free joint that carries all others"
        )
    if not all(is_zero(x) for x in root.armature):
        raise ModelError(
            f'{function}: the Free joint "{root.joint_name}" has an armature, which a floating base cannot '
            "have; set it to zero"
        )
    return root


def base_gravity(tree: Tree, q: Scalars, *, time: Time = None) -> Motion:
    """Return 0_a_g: the acceleration of free fall in base coordinates."""
    return tree.bodies[0].link_transform(q, time).apply(Motion(Vec3.zero(), tree.gravity))


def rigid_acceleration(I: RigidInertia, f: Force) -> Motion:
    """Return a = I^-1 f: alpha = I_C^-1 (n - c x f), linear = f / m - alpha x c; c = centre of mass."""
    c = I.com
    alpha = I.inertia_at_com.inverse() @ (f.angular - c.cross(f.linear))
    return Motion(alpha, f.linear * (1.0 / I.mass) - alpha.cross(c))


# The equation of motion of a floating-base system (Featherstone 2008 sections 9.3 and 9.4).
#
#     [I_0^c  F] [a_0]   [p_0^c]   [f_0]
#     [F^T    H] [q''] + [C    ] = [tau]                                                             (9.13)
#
# I_0^c is the inertia of the whole system as one rigid body, F_i = I_i^c S_i the force at the base that a
# unit acceleration of joint variable i needs (Eq. 9.12), all in base coordinates; f_0 is a force on the base,
# the book's f_0^x. Weights are in p_0^c and C where the base is said to accelerate by -a_g (`gravity=True`).


class FloatingBaseInertia(NamedTuple):
    """I_0^c, the n columns of F in base coordinates, and H `(n, n)`, n = nv - 6."""

    I_0: RigidInertia
    F: list[Force]
    H: Matrix


class FloatingBaseBias(NamedTuple):
    """p_0^c in base coordinates and C `(n,)`."""

    p_0: Force
    C: list[Scalar]


def floating_base_inertia(tree: Tree, q: Scalars, *, time: Time = None) -> FloatingBaseInertia:
    """Return the blocks of M(q) (Table 9.5, right): S = 1 at the base, whose rows of M are I_0^c and F."""
    root = floating_base(tree, "floating_base_inertia")
    joint_rows = mass_matrix(tree, q, time=time)[BASE_VARIABLES:]
    return FloatingBaseInertia(
        composite_inertias(tree, q, time=time)[root],
        [Force.of(row[:BASE_VARIABLES]) for row in joint_rows],
        [row[BASE_VARIABLES:] for row in joint_rows],
    )


def floating_base_bias(
    tree: Tree, q: Scalars, v: Scalars, *, gravity: bool = True, **given: Unpack[Loads]
) -> FloatingBaseBias:
    """Run Newton-Euler for a floating-base system with q'' = 0 and a_0 = 0 (Table 9.5, left)."""
    floating_base(tree, "floating_base_bias")
    needed = required_forces(tree, q, v, None, tree.gravity if gravity else Vec3.zero(), **given)
    b = tree.project_forces(needed)
    return FloatingBaseBias(Force.of(b[:BASE_VARIABLES]), b[BASE_VARIABLES:])  # S = 1 at the base


@public(
    "floating_base",
    "q v",
    method="composite",
    optional=LOADS,
    frame_free=True,
    returns="FloatingBaseEquations",
)
def floating_base_equations(tree: Tree, q: Scalars, v: Scalars, **given: Any) -> tuple[Any, ...]:
    """Compute the coefficients of [[I_0, F], [F^T, H]] (a_0, a_joints) + (p_0, C) = (f_0, tau).

    The model's root must be a Free joint that carries all other bodies; a_0 is its dv/dt and f_0 the force on
    it [N m, N], in base coordinates; see `FloatingBaseEquations` for the shapes. p_0 and C include weights
    and external forces. Featherstone 2008 section 9.3, Table 9.5.

    >>> model = da.models.quadruped()
    >>> q, v = model.random_state(0)
    >>> equations = da.floating_base.floating_base_equations(model, q, v)
    >>> float(equations.I_0[5, 5].round(6)) == round(float(model.total_mass), 6)
    True
    """
    I_0, F, H = floating_base_inertia(tree, q, time=given.get("time"))
    p_0, C = floating_base_bias(tree, q, v, **given)
    columns = [f.to_list() for f in F]
    return I_0.matrix(), [[column[r] for column in columns] for r in range(6)], H, p_0.to_list(), C


def reduced_floating_base_equations(
    inertia: FloatingBaseInertia, bias: FloatingBaseBias
) -> tuple[Matrix, list[Scalar]]:
    """Return (H^fl, C^fl) of H^fl q'' + C^fl = tau where f_0 = 0 (Eqs 9.14 to 9.16); H^fl is full."""
    W = [rigid_acceleration(inertia.I_0, f) for f in inertia.F]
    n = len(W)
    H = [[inertia.H[i][j] - W[min(i, j)].dot(inertia.F[max(i, j)]) for j in range(n)] for i in range(n)]
    return H, [c - w.dot(bias.p_0) for c, w in zip(bias.C, W, strict=True)]


# Forward dynamics of floating-base systems (Featherstone 2008 section 9.4).


def floating_base_forward_dynamics(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Return (a_0, q'') `(nv,)` by articulated bodies (Table 9.4): a_0 = (I_0^A)^-1 (f_0 - p_0^A) + 0_a_g.

    The system moves as without gravity, but that everything falls: 0_a_g is added to a_0 at the end. The
    first six of tau are a force f_0 on the base.
    """
    time = given.get("time")
    floating_base(tree, "floating_base_forward_dynamics")
    require_moving_mass(tree, "floating_base_forward_dynamics")
    f_x = body_forces(tree, q, **given)
    moved = spatial_velocity_products(tree, q, v, f_x, time)
    # At the base S = 1, so that its elimination is Eq. 9.17: D = I_0^A, u = f_0 - p_0^A.
    a = articulated_accelerations(
        tree, moved, tau, function="floating_base_forward_dynamics", gravity=Vec3.zero()
    ).a
    a_g = base_gravity(tree, q, time=time).to_list()
    return [x + g for x, g in zip(a, a_g, strict=False)] + a[BASE_VARIABLES:]


def floating_base_forward_dynamics_by_matrix(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Return (a_0, q'') `(nv,)` from Eq. 9.13 by Table 9.5, with the sparse factors of the (n + 6) matrix."""
    floating_base(tree, "floating_base_forward_dynamics_by_matrix")
    require_moving_mass(tree, "floating_base_forward_dynamics_by_matrix")
    return forward_dynamics_by_matrix(tree, q, v, tau, **given)


# Inverse dynamics of floating-base systems (Featherstone 2008 section 9.5, Table 9.6).
#
# The accelerations of the joints are known, that of the base is not: nothing but gravity and external forces
# can push it. With a_i = a_0 + a_i^r,
#
#   p_i = I_i a_i^r + v_i x* I_i v_i - f_i^x,   p_i^c = p_i + sum p_j^c                           (9.22, 9.23)
#   a_0 = -(I_0^c)^-1 p_0^c,   tau_i = S_i^T (I_i^c a_0 + p_i^c)                                  (9.24, 9.25)

GRAVITY = ("forces", "acceleration")


def _joint_count(model: Model) -> tuple[int, ...]:
    """Return the number of joint variables of a floating-base system, without the six of its base."""
    floating_base(model, "floating_base_inverse_dynamics")
    return (model.nv - BASE_VARIABLES,)


@public(
    "floating_base",
    "q v a_joints",
    optional=LOADS,
    method="composite",
    options={"gravity": choice(*GRAVITY)},
    frame_free=True,
    shapes={"a_joints": _joint_count},
    returns="tuple[Array, Array]",
)
def floating_base_inverse_dynamics(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    a_joints: Scalars,
    *,
    gravity: Literal["forces", "acceleration"] = "forces",
    **given: Unpack[Loads],
) -> tuple[list[Scalar], list[Scalar]]:
    """Compute the base acceleration a_0 = -(I_0^c)^-1 p_0^c and the joint forces from joint accelerations.

    Returns (a_0 `(…, 6)`, tau `(…, nv - 6)`): dv/dt of the Free root in base coordinates, angular first, and
    the joint forces tau_i = S_i^T (I_i^c a_0 + p_i^c) [N m or N]. `a_joints`: `(…, nv - 6)`, dv/dt of all
    other joints. `gravity`: applied as weights of the bodies ("forces") or added to a_0 ("acceleration");
    both give the same result. Featherstone 2008 section 9.5, Table 9.6.

    >>> model = da.models.quadruped()  # in the air, at rest: it falls with any pose of its legs
    >>> a_0, tau = da.floating_base.floating_base_inverse_dynamics(
    ...     model, model.neutral(), np.zeros(model.nv), np.zeros(model.nv - 6))
    >>> print(a_0.round(6) + 0.0, bool(abs(tau).max() < 1e-12))
    [ 0.    0.    0.    0.    0.   -9.81] True
    """
    require_choice("gravity treatment", gravity, GRAVITY)
    root = floating_base(tree, "floating_base_inverse_dynamics")
    a_g = base_gravity(tree, q, time=given.get("time"))
    a = [0.0] * BASE_VARIABLES + list(a_joints)
    weight = tree.gravity if gravity == "forces" else Vec3.zero()
    moved = required_forces(tree, q, v, a, weight, **given)

    def gather(
        body: Body, children: tuple[RigidInertia, Force]
    ) -> tuple[tuple[RigidInertia, Force], tuple[RigidInertia, Force]]:
        joint, p = moved[body]
        I_c, p_c = body.inertia + children[0], p + children[1]
        return (joint.X.inverse_apply(I_c), joint.X.inverse_apply(p_c)), (I_c, p_c)

    composite, _ = tree.inward(gather, (RigidInertia.zero(), Force.zero()))
    I_0, p_0 = composite[root]
    a_0 = -rigid_acceleration(I_0, p_0)

    def press(body: Body, a_base: Motion) -> tuple[Motion, list[Scalar]]:
        X, S, _, _ = moved[body][0]
        own = a_0 if body is root else X.apply(a_base)
        I_c, p_c = composite[body]
        f = I_c * own + p_c
        return own, [s.dot(f) + m * x for s, m, x in zip(S, body.armature, body.own_v(a), strict=True)]

    tau = tree.collect(tree.outward(press, Motion.zero()))
    base = a_0 if gravity == "forces" else a_0 + a_g
    return base.to_list(), tau[BASE_VARIABLES:]


# Momentum, energy and Jacobians of floating-base systems (Featherstone 2008 Examples 9.3 and 9.4).
#
#     momentum = sum I_i v_i = I_0^c v_0 + F q'                                     in base coordinates    (1)
#     T = (v_0, q')^T [[I_0^c, F], [F^T, H]] (v_0, q') / 2                                                 (2)
#     J_i^f = J_i - (I_0^c)^-1 F                                                                           (3)
#
# Without external forces I_0^c a_0 + F q'' + p_0^c = 0, so that J^f says how the velocity of body i changes
# with those of the joints when the base is left to itself: delta v_i = J_i^f delta q'.


def floating_base_momentum(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> Force:
    """Return I_0^c v_0 + F q' in base coordinates; Eq. (1)."""
    I_0, F, _ = floating_base_inertia(tree, q, time=time)
    p_0: Force = I_0 * Motion.of(list(v[:BASE_VARIABLES]))
    momentum: Force = total((f * x for f, x in zip(F, v[BASE_VARIABLES:], strict=True)), p_0)
    return momentum


def floating_base_kinetic_energy(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> Scalar:
    """Return T [J] from the blocks of Eq. (2)."""
    I_0, F, H = floating_base_inertia(tree, q, time=time)
    v_0, rates = Motion.of(list(v[:BASE_VARIABLES])), list(v[BASE_VARIABLES:])
    total = I_0.kinetic_energy(v_0)
    for i, x in enumerate(rates):
        total = total + v_0.dot(F[i]) * x
        for j, y in enumerate(rates):
            total = total + 0.5 * H[i][j] * x * y
    return total


@public("floating_base", "q", method="tree", options=JACOBIAN)
def floating_base_jacobian(
    model: Model, q: Scalars, where: Place, *, frame: str = "world_aligned", time: Time = None
) -> Matrix:
    """Compute the free-flight Jacobian J^f = J - X (I_0^c)^-1 F `(…, 6, nv - 6)` of a body or frame.

    If internal forces change the joint rates by delta and nothing holds the base, the velocity of the body or
    frame changes by J^f delta (angular first, at the point and in the axes that `frame` selects, as in
    `jacobian`). Featherstone 2008 Example 9.4.

    >>> model = da.models.quadruped()
    >>> J = da.floating_base.floating_base_jacobian(model, model.neutral(), model.bodies[0].name)
    >>> J.shape == (6, model.nv - 6)
    True
    """
    I_0, F, _ = floating_base_inertia(model, q, time=time)
    J = jacobian(model, q, where, frame=frame, time=time)
    recoil = [rigid_acceleration(I_0, f).to_list() for f in F]
    return [
        [x - dot(row[:BASE_VARIABLES], w) for x, w in zip(row[BASE_VARIABLES:], recoil, strict=True)]
        for row in J
    ]
