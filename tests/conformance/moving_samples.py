"""Random systems that move, and how results of several routes are compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from tests.conformance.models import KINDS

import dalembert as da
from dalembert.models.random_trees import random_joint, random_placement

EXAMPLES = 100


class Sample:
    """A model in motion under forces: q, v, a and tau `(nv,)`, and external forces on every body."""

    def __init__(self, model: da.Model, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.model = model
        q, v = model.random_state(rng)
        self.q, self.v = q.tolist(), v.tolist()
        self.a, self.tau = (rng.standard_normal(model.nv).tolist() for _ in range(2))
        self.f = rng.standard_normal((len(model.bodies), 6)).tolist()
        self.explicit = model
        """The same with its loops solved by a function, where there is one."""


@st.composite
def moving_trees(
    draw: st.DrawFn, *, largest: int = 6, armature: bool = True, root: str | None = None
) -> Sample:
    """A tree of every joint type, with or without branches and rotors, in a random motion."""
    seed = draw(st.integers(0, 2**31))
    model = da.models.random_tree(
        seed,
        bodies=draw(st.integers(1, largest)),
        joints=KINDS,
        branching=draw(st.sampled_from((0.0, 0.5, 1.0))),
        armature=draw(st.sampled_from((0.0, 0.3))) if armature else 0.0,
    )
    if root is not None:
        trunk = da.ModelBuilder(gravity=model.gravity.to_list())
        trunk.add_body(
            "trunk", "world", random_joint(seed, root), placement=random_placement(seed), inertia=RANDOM_TRUNK
        )
        model = trunk.build().attach(model, "trunk", prefix="limb_")
    assume(model.nv > 0)
    return Sample(model, seed)


RANDOM_TRUNK = da.RigidInertia(
    1.3, (0.1, -0.05, 0.08), ((0.05, 0.01, 0.0), (0.01, 0.06, 0.004), (0.0, 0.004, 0.04))
)


def array(x: Any) -> np.ndarray:
    return np.array(x, dtype=float)


def agree(routes: Mapping[str, Any], tolerance: float, scale: Any) -> None:
    """All routes give what the first gives, within `tolerance` times `scale`, element by element or whole."""
    (name, first), *others = routes.items()
    reference = array(first)
    assert np.isfinite(reference).all(), name
    for other, found in others:
        error = np.abs(array(found) - reference)
        worst = float(np.max(error / scale, initial=0.0))
        assert worst <= tolerance, f"{other} differs from {name} by {worst:.1e} of the scale"


def acceleration_scale(M: np.ndarray, a: np.ndarray) -> float:
    """What the condition number of M makes of rounding errors, as a multiple of the tolerance."""
    condition = float(np.linalg.cond(M)) if M.size else 1.0
    return (1.0 + float(np.abs(a).max(initial=0.0))) * max(1.0, condition / 1e5)
