"""Springs and dampers between points of bodies: lengths, tensions, and what they give to joint forces.

With the length l(q) of a path and its row J = dl/dq of the rates, dl/dt = J v, a spring of tension T (Eq. 1
of `model.springs`) has the joint forces

    tau = - J^T T                                                                                        (1)

Points are of the model's bodies; q, v and tau are the same for the aligned frames of a tree.
"""

from __future__ import annotations

from typing import NamedTuple

from dalembert.algorithms.aligned import original_model
from dalembert.algorithms.dense import dot
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.model.model import Model
from dalembert.model.springs import Path, Spring, lines_along, placed_at
from dalembert.model.topology import WORLD_NAME
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time, absolute, select
from dalembert.spatial import Force, Transform, Vec3


class Stretched(NamedTuple):
    """A spring, its stretch x [m] beyond the slack lengths, and the row J of the rate of its length."""

    spring: Spring
    stretch: Scalar
    row: list[Scalar]

    @property
    def stiffness(self) -> Scalar:
        """The stiffness at this stretch [N/m]: zero where the spring is slack."""
        if self.spring.is_never_slack:
            return self.spring.stiffness
        return select(absolute(self.stretch) > 0.0, self.spring.stiffness, 0.0)

    def tension(self, v: Scalars) -> Scalar:
        """Return T [N]."""
        return self.spring.stiffness * self.stretch + self.spring.damping * dot(self.row, v)


def stretched_springs(tree: Tree, q: Scalars, *, time: Time = None) -> list[Stretched]:
    """Return the springs of a tree in a configuration."""
    if not tree.springs:
        return []
    model = original_model(tree)
    poses = forward_kinematics(model, q, time=time)
    found = []
    for spring in model.springs:
        directions, lengths = lines_along(_in_world(model, spring.points, poses))
        row = length_row(model, q, spring.points, directions, poses, time)
        found.append(Stretched(spring, spring.stretch(sum(lengths[1:], lengths[0])), row))
    return found


def length_row(
    model: Model, q: Scalars, path: Path, directions: list[Vec3], poses: PerBody[Transform], time: Time
) -> list[Scalar]:
    """Return J of the length of a path `(nv,)`: the joint forces of unit forces along its lines, which pull
    each point away from the one before and after it."""
    acting = [Force.zero()] * len(model.bodies)
    forces = [a - b for a, b in zip([Vec3.zero(), *directions], [*directions, Vec3.zero()], strict=True)]
    for (name, _), point, force in zip(path, _in_world(model, path, poses), forces, strict=True):
        if name != WORLD_NAME:
            body = model.bodies[name].index
            acting[body] = acting[body] + poses[body].apply(Force(point.cross(force), force))
    joints = [body.jcalc(q, None, time) for body in model.bodies]
    return model.project_forces(PerBody(list(zip(joints, acting, strict=True))))


def _in_world(model: Model, path: Path, poses: PerBody[Transform]) -> list[Vec3]:
    return [
        placed_at(None if name == WORLD_NAME else poses[model.bodies[name]], point) for name, point in path
    ]


def spring_forces(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> list[Scalar]:
    """Return tau `(nv,)` of Eq. (1), of all springs between points [N m or N]."""
    total: list[Scalar] = [0.0] * tree.nv
    for item in stretched_springs(tree, q, time=time):
        tension = item.tension(v)
        total = [t - j * tension for t, j in zip(total, item.row, strict=True)]
    return total


def stretch_energy(tree: Tree, q: Scalars, *, time: Time = None) -> Scalar:
    """Return the energy stored in springs between points, sum of k x^2 / 2 [J]."""
    energy: Scalar = 0.0
    for item in stretched_springs(tree, q, time=time):
        energy = energy + 0.5 * item.spring.stiffness * item.stretch * item.stretch
    return energy
