"""The configuration in which a model without a given configuration is shown."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.api import forward_kinematics
from dalembert.model.model import Model
from dalembert.viewer.shape_data import drawing_of
from dalembert.viewer.surfaces import surfaces

__all__ = ["standing"]

Array: TypeAlias = npt.NDArray[np.float64]


def standing(model: Model) -> Array:
    """Return the neutral configuration (nq,); free bodies stand on the world's plane, not in it."""
    q = model.neutral()
    planes = [shape for shape in model.world_shapes if shape.kind == "plane"]
    roots = [body for body in model.bodies if body.parent < 0 and body.joint.kind == "free"]
    if not planes or not roots or model.time_dependent:
        return q
    X = planes[0].placement.as_transform()
    normal = np.array([float(x) for x in X.R.column(2)])
    height = float(normal @ np.array([float(x) for x in X.p]))
    poses = forward_kinematics(model, q)
    lowest = dict.fromkeys(range(-1, len(model.bodies)), np.inf)
    for surface in surfaces(drawing_of(model), poses.rotation, poses.translation):
        root = _root(model, surface.body)
        lowest[root] = min(lowest[root], float((surface.corners @ normal).min()) - height)
    for body in roots:
        if -np.inf < lowest[body.index] < 0.0:
            R: Array = np.array(body.placement.as_transform().R.to_list())
            q[body.q_slice][:3] -= lowest[body.index] * (R.T @ normal)
    return q


def _root(model: Model, body: int) -> int:
    while body >= 0 and model.bodies[body].parent >= 0:
        body = model.bodies[body].parent
    return body
