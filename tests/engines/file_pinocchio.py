"""A model of ours against Pinocchio's of the same URDF file.

Joints are matched by name. Pinocchio reads every joint as an independent one here; mimic joints are imposed
on its results: with v_full = G v, M = G^T M_full G and C = G^T C_full(G q + g, G v). G is made from the
file's `<mimic>` tags by themselves, so that our couplings are checked as well.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from tests.engines.file_table import (
    ARMATURE,
    SINGULAR,
    STATES,
    Array,
    Difference,
    ModelFile,
    Row,
    by_algorithms,
    difference_of,
    merged,
    row_of,
)

from dalembert import Model
from dalembert.interop.pinocchio_bridge import image_of_joint


@dataclass(frozen=True)
class PinocchioFile:
    """Pinocchio's model with all joints independent, and its mimic joints as (leader, ratio, offset)."""

    model: Any
    followers: dict[str, tuple[str, float, float]]


def row(file: ModelFile, calls: Any = by_algorithms) -> Row:
    """What became of a URDF file, with a fixed and with a floating root."""
    return merged(
        [
            row_of(
                file,
                reader(root),
                partial(compare, calls=calls),
                lambda peer: peer.model.nv,
                root=root,
                roots=[file.root],
            )
            for root in ("fixed", "floating")
        ]
    )


def reader(root: str) -> Callable[[Path], PinocchioFile]:
    """What loads a file with a "fixed" or a "floating" root."""

    def read(path: Path) -> PinocchioFile:
        free = () if root == "fixed" else (pin.JointModelFreeFlyer(),)
        return PinocchioFile(pin.buildModelFromUrdf(str(path), *free), followers_in(path))

    return read


def followers_in(path: Path) -> dict[str, tuple[str, float, float]]:
    """The file's mimic joints; none where Pinocchio reads what is not well-formed."""
    try:
        document = ElementTree.parse(path).getroot()
    except ElementTree.ParseError:
        return {}
    found = {}
    for joint in document.findall("joint"):
        mimic = joint.find("mimic")
        if mimic is not None:
            ratio, offset = float(mimic.get("multiplier", 1)), float(mimic.get("offset", 0))
            found[joint.attrib["name"]] = (mimic.attrib["joint"], ratio, offset)
    return found


def coupling(peer: PinocchioFile) -> tuple[Array, Array, list[int]]:
    """(G, g, independent): all displacements from the neutral pose, G x + g, from the independent ones x."""
    model = peer.model
    G, g = np.eye(model.nv), np.zeros(model.nv)
    names = {name: model.joints[model.getJointId(name)].idx_v for name in list(model.names)[1:]}
    followers = {name: rule for name, rule in peer.followers.items() if name in names}
    for name in followers:
        row, leader, ratio, offset = names[name], name, 1.0, 0.0
        while leader in followers:
            leader, factor, shift = followers[leader]
            ratio, offset = ratio * factor, offset + ratio * shift
        G[row], g[row] = ratio * np.eye(model.nv)[names[leader]], offset
    independent = [i for i in range(model.nv) if i not in {names[name] for name in followers}]
    return G[:, independent], g, independent


def places_of(model: Model, peer: PinocchioFile) -> tuple[dict[int, Any], list[int]]:
    """For every coordinate of our q and v: where it stands in Pinocchio's."""
    positions: dict[int, Any] = {}
    velocities = [-1] * model.nv
    theirs = peer.model
    for index in range(1, theirs.njoints):
        name, joint = theirs.names[index], theirs.joints[index]
        ours = root_joint(model) if name == "root_joint" else model.joint(name)
        if ours.body.dependence is not None:
            continue
        image = image_of_joint(joint, name)
        for k, source in enumerate(image.q):
            at = source + joint.idx_q if isinstance(source, int) else tuple(i + joint.idx_q for i in source)
            positions[ours.q_slice.start + k] = at
        for k, place in enumerate(image.v):
            velocities[ours.v_slice.start + k] = place + joint.idx_v
    assert sorted(positions) == list(range(model.nq)), "some of our joints are none of Pinocchio's"
    assert -1 not in velocities
    return positions, velocities


def root_joint(model: Model) -> Any:
    """The free joint of a floating root, whatever it is called."""
    (root,) = [joint for joint in model.joints if joint.body.parent == -1 and joint.kind == "free"]
    return root


def compare(model: Model, peer: PinocchioFile, calls: Any = by_algorithms) -> Difference:
    """The model against Pinocchio's at random moving states; `calls` computes ours.

    Where M is singular, because joints move no mass, no engine has an acceleration to name: both are given a
    little armature.
    """
    G, g, independent = coupling(peer)
    positions, velocities = places_of(model, peer)
    order = [independent.index(place) for place in velocities]
    rng = np.random.default_rng(peer.model.nv)
    x, v, tau = rng.uniform(-1.2, 1.2, (3, STATES, G.shape[1]))
    q_pin = configurations(peer.model, x @ G.T + g)
    q = np.stack([*(coordinate(q_pin, positions[i]) for i in range(model.nq)), np.zeros(STATES)], axis=1)
    q, v_ours, tau_ours = q[:, :-1], v[:, order], tau[:, order]
    theirs = pinocchio_dynamics(peer.model, G, q_pin, v, tau)
    singular = bool(theirs[0].size) and not np.linalg.cond(theirs[0]).max() < SINGULAR
    if singular:
        peer.model.armature = np.full(peer.model.nv, ARMATURE) * np.isin(range(peer.model.nv), independent)
        geared = {f"{joint.name}.armature": [ARMATURE] * joint.nv for joint in model.joints if joint.nv}
        model = model.with_values(geared, inertia="as_given")
        theirs = pinocchio_dynamics(peer.model, G, q_pin, v, tau)
    M, C, a = theirs
    found = difference_of(
        calls(model, q, v_ours, tau_ours), (M[:, order][:, :, order], C[:, order], a[:, order])
    )
    return replace(found, singular=singular)


def configurations(theirs: Any, x: Array) -> Array:
    rows = [pin.integrate(theirs, pin.neutral(theirs), row) for row in x]
    return np.array(rows).reshape(len(x), theirs.nq)


def pinocchio_dynamics(theirs: Any, G: Array, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array]:
    """M, C and a of the coupled system, in the order of Pinocchio's independent variables."""
    data, v_full = theirs.createData(), v @ G.T
    M, C, a = np.zeros((STATES, theirs.nv, theirs.nv)), np.zeros(v_full.shape), np.zeros(v.shape)
    for k in range(STATES if theirs.nv else 0):
        upper = np.triu(pin.crba(theirs, data, q[k]))
        M[k] = upper + np.triu(upper, 1).T
        C[k] = pin.nonLinearEffects(theirs, data, q[k], v_full[k])
        if G.shape[1] == theirs.nv:
            a[k] = pin.aba(theirs, data, q[k], v_full[k], tau[k])
    M, C = G.T @ M @ G, C @ G
    if G.shape[1] != theirs.nv:
        a = solved(M, tau - C)
    return M, C, a


def solved(M: Array, tau: Array) -> Array:
    try:
        return np.linalg.solve(M, tau[..., None])[..., 0]
    except np.linalg.LinAlgError:
        return np.full(tau.shape, np.nan)


def coordinate(q_pin: Array, source: Any) -> Array:
    """One of our coordinates: a number of theirs, or the angle of (cos, sin)."""
    if isinstance(source, int):
        return q_pin[:, source]
    return np.arctan2(q_pin[:, source[1]], q_pin[:, source[0]])
