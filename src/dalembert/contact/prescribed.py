"""Joints whose motion is given: their velocities in a step are known, and leave the unknowns.

A joint that moves from q to q' in a step of h [s] has the mean velocity w of the displacement between them,
in centroidal coordinates (`algorithms.integrators`): constant in time for a body that is not accelerated,
however it turns. The momentum of the step before has the mean velocity of that step, so that

    (w_k - w_(k-1)) / h = (q_(k+1) - 2 q_k + q_(k-1)) / h^2                                             (1)

is the acceleration at the start of the step to second order, and its velocity is the mean of both. Bodies
that touch a prescribed one are moved by h w, exactly as far as that: no gap opens and none closes by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.integrators import from_centroidal, to_centroidal
from dalembert.model.body import Body
from dalembert.model.joints import Free, Planar
from dalembert.scalar import Scalar


class PrescribedMotion(NamedTuple):
    """The motion of prescribed joints in a step; entries of other joints mean nothing.

    `places` in v; the mean velocities of the previous step, `earlier`, and of this one, both `(nv,)` along
    the axes at the start of the step; q `(nq,)` and v `(nv,)` at its end.
    """

    places: frozenset[int]
    earlier: Sequence[Scalar]
    velocity: Sequence[Scalar]
    q: Sequence[Scalar]
    v: Sequence[Scalar]

    def fill(self, v: Sequence[Scalar], given: Sequence[Scalar]) -> list[Scalar]:
        """Return v with the entries of prescribed joints from `given`."""
        return [given[k] if k in self.places else x for k, x in enumerate(v)]

    def middle(self) -> list[Scalar]:
        """Return the velocities at the start of the step: the mean of those of both steps around it."""
        return [0.5 * (a + b) for a, b in zip(self.earlier, self.velocity, strict=True)]

    def moves(self, body: Body) -> bool:
        """Return whether the joint of a body is prescribed."""
        return body.dependence is None and body.v_slice.start in self.places and body.nv > 0


def mean_velocity(body: Body, q: Sequence[Scalar], q_end: Sequence[Scalar], dt: Scalar) -> list[Scalar]:
    """Return the velocity w in centroidal coordinates at which a joint moves from q to q_end in dt [s]."""
    rate = 1.0 / dt
    travel, still = body.joint.difference(q, q_end), [0.0] * body.nv
    if not isinstance(body.joint, Free | Planar):
        return [x * rate for x in travel]
    (y, _), (y_end, _) = to_centroidal(body, q, still), to_centroidal(body, q_end, still)
    turns = 3 if isinstance(body.joint, Free) else 1
    moved = [b - a for a, b in zip(y[: body.nv - turns], y_end[: body.nv - turns], strict=True)]
    return [x * rate for x in (*travel[:turns], *moved)]


def along_axes(body: Body, q: Sequence[Scalar], w: Sequence[Scalar]) -> list[Scalar]:
    """Return v along the axes at q of the velocity w in centroidal coordinates."""
    y, _ = to_centroidal(body, q, [0.0] * body.nv)
    return from_centroidal(body, y, w)[1]
