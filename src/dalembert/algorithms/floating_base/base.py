"""A floating base: one body with a Free joint carries all others (Featherstone 2008 §9.3).

The base is body 0 of the tree. Its velocity v_0, its acceleration a_0 and the force on it are the first six
entries of v, a and tau, in base coordinates, since a Free joint has S = 1; what follows are the joints'.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.open_tree import require_open_tree
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.joints import Free
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero
from dalembert.spatial import Force, Motion, RigidInertia, Vec3

__all__ = ["BASE_VARIABLES", "base_gravity", "floating_base", "rigid_acceleration"]

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


def base_gravity(tree: Tree, q: Sequence[Scalar], *, time: Scalar | None = None) -> Motion:
    """Return 0_a_g: the acceleration of free fall in base coordinates."""
    return tree.bodies[0].link_transform(q, time).apply(Motion(Vec3.zero(), tree.gravity))


def rigid_acceleration(I: RigidInertia, f: Force) -> Motion:
    """Return a = I^-1 f: alpha = I_C^-1 (n - c x f), linear = f / m - alpha x c,
    with c the centre of mass."""
    c = I.com
    alpha = I.inertia_at_com.inverse() @ (f.angular - c.cross(f.linear))
    return Motion(alpha, f.linear * (1.0 / I.mass) - alpha.cross(c))
