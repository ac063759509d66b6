"""A model of ours against MuJoCo's of the same MJCF file.

Compared is the tree: contact, limits, equality constraints, dry friction and actuators are switched off in
MuJoCo, loop joints, couplings and dry friction are taken out of ours. Springs and dampers act in both:
`qfrc_passive` is compared with `passive_forces`. MuJoCo's rates are v_mj with v = P(q) v_mj, so that
M_mj = P^T M P, tau_mj = P^T tau and dv/dt = P a_mj + P' v_mj; P differs from the identity for free joints
only, whose linear velocity MuJoCo keeps in world axes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from tests.engines.file_table import (
    STATES,
    Array,
    Difference,
    ModelFile,
    Row,
    by_algorithms,
    dense,
    difference_of,
    relative,
    row_of,
    scalars,
)

from dalembert import Model, algorithms, convert_state

DISABLED = (
    mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    | mujoco.mjtDisableBit.mjDSBL_CONTACT
    | mujoco.mjtDisableBit.mjDSBL_ACTUATION
    | mujoco.mjtDisableBit.mjDSBL_SENSOR
)


def row(file: ModelFile, calls: Any = by_algorithms) -> Row:
    """What became of an MJCF file."""
    return row_of(file, read, partial(compare, calls=calls), lambda peer: peer.nv)


def read(path: Path) -> Any:
    return mujoco.MjModel.from_xml_path(str(path))


def open_tree(model: Model) -> Model:
    """The model without loops, couplings and dry friction."""
    tree = model.tree().uncoupled()
    dry = {f"{joint.name}.friction": np.zeros(joint.nv) for joint in tree.joints if any(joint.body.friction)}
    return tree.with_values(dry, inertia="as_given") if dry else tree


def compare(model: Model, theirs: Any, calls: Any = by_algorithms) -> Difference:
    """The model's open tree against MuJoCo's at random moving states; `calls` computes ours."""
    tree = open_tree(model)
    assert (tree.nq, tree.nv) == (theirs.nq, theirs.nv)
    theirs.opt.disableflags |= DISABLED
    rng = np.random.default_rng(theirs.nv)
    v_mj, tau_mj = rng.standard_normal((2, STATES, theirs.nv))
    q_mj = np.tile(theirs.qpos0, (STATES, 1))
    M_mj, C_mj = np.zeros((STATES, theirs.nv, theirs.nv)), np.zeros((STATES, theirs.nv))
    passive_mj, a_mj = np.zeros((2, STATES, theirs.nv))
    data = mujoco.MjData(theirs)
    for k in range(STATES if theirs.nv else 0):
        mujoco.mj_integratePos(theirs, q_mj[k], rng.uniform(-1.2, 1.2, theirs.nv), 1.0)
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q_mj[k], v_mj[k], tau_mj[k]
        mujoco.mj_forward(theirs, data)
        mujoco.mj_fullM(theirs, data, M_mj[k])
        C_mj[k], passive_mj[k], a_mj[k] = data.qfrc_bias, data.qfrc_passive, data.qacc_smooth
    q, v = convert_state(tree, q_mj, v_mj, source="mujoco", target="dalembert")
    assert v is not None
    P = rates(tree, q_mj, np.eye(theirs.nv))
    P_T = np.swapaxes(P, 1, 2)
    turning = drift(tree, v)  # P' v_mj
    passive = dense(algorithms.passive_forces(tree, scalars(q), scalars(v)))
    tau = applied(np.linalg.inv(P_T), tau_mj)
    M, C, a = calls(tree, q, v, tau + passive)
    ours = (P_T @ M @ P, applied(P_T, C + applied(M, turning)), applied(np.linalg.inv(P), a - turning))
    found = difference_of(ours, (M_mj, C_mj, a_mj))
    wrong = relative(applied(P_T, passive), passive_mj)
    return replace(found, bias=max(found.bias, wrong))


def applied(matrices: Array, vectors: Array) -> Array:
    return np.einsum("bij,bj->bi", matrices, vectors)


def rates(tree: Model, q_mj: Array, units: Array) -> Array:
    """P (states, nv, nv), a column for each of MuJoCo's velocity variables."""
    columns = []
    for unit in units:
        rows = np.tile(unit, (STATES, 1))
        columns.append(convert_state(tree, q_mj, rows, source="mujoco", target="dalembert")[1])
    return np.stack(columns, axis=2) if columns else np.zeros((STATES, 0, 0))


def drift(tree: Model, v: Array) -> Array:
    """P' v_mj = d(R^T)/dt v_world = -omega x v for the linear velocity of every free joint."""
    result = np.zeros_like(v)
    for joint in tree.joints:
        if joint.kind == "free":
            result[:, joint.linear] = -np.cross(v[:, joint.angular], v[:, joint.linear])
    return result
