"""Classes in which public functions return several arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.host.foreign_arrays import bridge_of
from dalembert.model.model import Model

Array: TypeAlias = npt.NDArray[Any]


class Pose(NamedTuple):
    """A frame in the world: `rotation (…, 3, 3)`, axes as columns; `translation (…, 3)`, origin [m].

    >>> pose = da.forward_kinematics(da.models.two_link_arm(), [0.0, 0.0])["tip"]
    >>> print(pose.translation)
    [2. 0. 0.]
    """

    rotation: Array
    translation: Array


@final
class Poses:
    """Poses of all bodies in the world, in the order of `model.bodies`.

    >>> poses = da.forward_kinematics(da.models.two_link_arm(), np.zeros((5, 2)))
    >>> poses.translation.shape, poses["tip"].translation.shape
    ((5, 2, 3), (5, 3))
    """

    __slots__ = ("_model", "rotation", "translation")

    def __init__(self, model: Model, rotation: Array, translation: Array) -> None:
        self._model = model
        self.rotation = rotation
        self.translation = translation

    def __getitem__(self, name: str) -> Pose:
        """Return the pose of a body or of a named frame."""
        frame = self._model.frame(name)
        R: Array = np.array(frame.placement.R.to_list())
        p: Array = np.array(frame.placement.p.to_list())
        if frame.body < 0:
            batch = self.translation.shape[:-2]
            return Pose(
                self._alike(np.broadcast_to(R, (*batch, 3, 3))), self._alike(np.broadcast_to(p, (*batch, 3)))
            )
        R_body, p_body = self.rotation[..., frame.body, :, :], self.translation[..., frame.body, :]
        return Pose(R_body @ self._alike(R), p_body + (R_body @ self._alike(p[:, np.newaxis]))[..., 0])

    def _alike(self, constant: Array) -> Array:
        """Return numbers of the model as an array of the kind that the poses are."""
        bridge = bridge_of([self.rotation])
        if bridge is not None:
            return bridge.alike(constant, self.rotation)  # type: ignore[no-any-return]
        return constant.astype(self.rotation.dtype)

    def __len__(self) -> int:
        return len(self._model.bodies)

    def __repr__(self) -> str:
        return f"<Poses of {len(self)} bodies, batch {self.translation.shape[:-2]}>"


class HybridDynamicsDerivatives(NamedTuple):
    """The derivatives of a and tau with respect to q (tangent space), v, tau and a: `(…, nv, nv)` each.

    a and tau are complete. Columns of inputs that are not read, tau of prescribed joints and a of free ones,
    are zero.
    """

    a_by_q: Array
    a_by_v: Array
    a_by_tau: Array
    a_by_a: Array
    tau_by_q: Array
    tau_by_v: Array
    tau_by_tau: Array
    tau_by_a: Array


class FloatingBaseEquations(NamedTuple):
    """The terms of [[I_0, F], [F^T, H]] (a_0, a_joints) + (p_0, C) = (f_0, tau): Featherstone 2008 Eq. 9.13.

    `I_0` `(…, 6, 6)` is the inertia of the whole system as one rigid body, `F` `(…, 6, n)`, `H` `(…, n, n)`,
    `p_0` `(…, 6)`, `C` `(…, n)` with n = nv - 6, all in base coordinates.

    >>> da.floating_base.FloatingBaseEquations._fields
    ('I_0', 'F', 'H', 'p_0', 'C')
    """

    I_0: Array
    F: Array
    H: Array
    p_0: Array
    C: Array


RECORDS: Final[dict[str, Callable[..., Any]]] = {
    "Poses": Poses,
    "HybridDynamicsDerivatives": lambda model, *arrays: HybridDynamicsDerivatives(*arrays),
    "FloatingBaseEquations": lambda model, *arrays: FloatingBaseEquations(*arrays),
}
"""How results become a class, by the name that a declaration returns: functions of the model and arrays."""
