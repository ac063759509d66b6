"""The inertial parameters of a system as one vector, in which its equations of motion are linear.

    pi_i = (m, h_x, h_y, h_z, I_xx, I_yy, I_zz, I_xy, I_xz, I_yz)          h = m c                        (1)

of body i in its own frame: mass [kg], first moment [kg m], and inertia about the body's *origin* [kg m^2].
The ten of every body stand in the order of the bodies; where armatures count as parameters, one for each
velocity variable of each joint follows them, in the same order [kg m^2 or kg].
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.errors import require_flag
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import RigidInertia, SymMat3, Vec3

__all__ = ["PARTS", "inertia_of", "inertial_parameters", "parameter_names"]

PARTS = ("mass", "h_x", "h_y", "h_z", "I_xx", "I_yy", "I_zz", "I_xy", "I_xz", "I_yz")
"""The ten parameters of a body, in order."""


def inertial_parameters(tree: Tree, *, armature: bool = False) -> list[Scalar]:
    """Return pi: ten numbers a body, (1), then the armatures if asked for."""
    require_flag("armature", armature)
    bodies = [x for body in tree.bodies for x in body.inertia.leaves()]
    return bodies + ([x for body in tree.bodies for x in body.armature] if armature else [])


def parameter_names(tree: Tree, *, armature: bool = False) -> list[str]:
    """Return `"<body>.mass"`, `"<body>.h_x"` … `"<body>.I_yz"`, then `"<joint>.armature"`,
    numbered if several."""
    require_flag("armature", armature)
    names = [f"{body.name}.{part}" for body in tree.bodies for part in PARTS]
    return names + ([name for body in tree.bodies for name in _armature_names(body)] if armature else [])


def inertia_of(parameters: Sequence[Scalar]) -> RigidInertia:
    """Return the inertia of a body's ten parameters."""
    mass, hx, hy, hz, *I = parameters
    return RigidInertia.from_compact(mass, Vec3(hx, hy, hz), SymMat3(*I))


def _armature_names(body: Body) -> list[str]:
    name = f"{body.joint_name}.armature"
    return [name] if body.nv == 1 else [f"{name}[{k}]" for k in range(body.nv)]
