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
from typing import Any, NamedTuple

import mujoco
import numpy as np
from tests.engines.file_table import (
    ARMATURE,
    SINGULAR,
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
from dalembert.model.configuration import integrate

BIT = mujoco.mjtDisableBit
BESIDES_CONSTRAINTS = int(BIT.mjDSBL_CONTACT | BIT.mjDSBL_ACTUATION | BIT.mjDSBL_SENSOR)
BESIDES_TREE = BESIDES_CONSTRAINTS | int(BIT.mjDSBL_CONSTRAINT)
BESIDES_EQUALITIES = BESIDES_CONSTRAINTS | int(BIT.mjDSBL_LIMIT | BIT.mjDSBL_FRICTIONLOSS)
LOOP_EQUALITIES = (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD))
ONE_FREEDOM = (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE))

# Without a handler MuJoCo writes its warnings to a file in the current folder.
mujoco.set_mju_user_warning(lambda text: None)

# By default MuJoCo keeps up to 500 MB of meshes and textures of all files for the next one.
mujoco.mj_setCacheCapacity(mujoco.mj_getCache(), 0)


def row(file: ModelFile, calls: Any = by_algorithms) -> Row:
    """What became of an MJCF file."""
    return row_of(file, read, partial(compare, calls=calls), lambda peer: peer.nv, roots=[file.root])


def read(path: Path) -> Any:
    return mujoco.MjModel.from_xml_path(str(path))


def open_tree(model: Model) -> Model:
    """The model without loops, couplings and dry friction."""
    tree = model.tree().uncoupled()
    dry = {
        f"{joint.name}.joint_friction": np.zeros(joint.nv)
        for joint in tree.joints
        if any(joint.body.friction)
    }
    return tree.with_values(dry, inertia="as_given") if dry else tree


def compare(model: Model, theirs: Any, calls: Any = by_algorithms) -> Difference:
    """The model's open tree against MuJoCo's at random moving states; `calls` computes ours.

    Where M is singular, because slides or hinges repeat one another, no engine has an acceleration to name:
    both are given a little armature.
    """
    tree = open_tree(model)
    assert (tree.nq, tree.nv) == (theirs.nq, theirs.nv), "the files' coordinates are not all there"
    theirs.opt.disableflags |= BESIDES_TREE
    rng = np.random.default_rng(theirs.nv)
    x, v_mj, tau_mj = rng.uniform(-1.2, 1.2, (3, STATES, theirs.nv))
    q_mj = np.tile(theirs.qpos0, (STATES, 1))
    for q_row, x_row in zip(q_mj, x):
        mujoco.mj_integratePos(theirs, q_row, x_row, 1.0)
    state = mujoco_dynamics(theirs, q_mj, v_mj, tau_mj)
    singular = bool(theirs.nv) and not np.linalg.cond(state.M).max() < SINGULAR
    if singular:
        tree = geared(tree)
        theirs.dof_armature[:] += ARMATURE * np.isin(theirs.jnt_type[theirs.dof_jntid], ONE_FREEDOM)
        state = mujoco_dynamics(theirs, q_mj, v_mj, tau_mj)
    q, v = convert_state(tree, q_mj, v_mj, source="mujoco", target="dalembert")
    assert v is not None
    P = rates(tree, q_mj, np.eye(theirs.nv))
    P_T = np.swapaxes(P, 1, 2)
    turning = drift(tree, v)  # P' v_mj
    passive = dense(algorithms.passive_forces(tree, scalars(q), scalars(v)))
    M, C, a = calls(tree, q, v, applied(np.linalg.inv(P_T), tau_mj) + passive)
    ours = (P_T @ M @ P, applied(P_T, C + applied(M, turning)), applied(np.linalg.inv(P), a - turning))
    found = difference_of(ours, (state.M, state.C, state.a))
    unit = np.abs(state.M).max(axis=(1, 2), initial=0.0)
    wrong = relative(applied(P_T, passive), state.passive, unit)
    return replace(
        found,
        bias=max(found.bias, wrong),
        constraints=constraint_error(model, theirs),
        singular=singular,
    )


class Dynamics(NamedTuple):
    """MuJoCo's mass matrices, bias and passive forces, and accelerations, a state a row."""

    M: Array
    C: Array
    passive: Array
    a: Array


def mujoco_dynamics(theirs: Any, q: Array, v: Array, tau: Array) -> Dynamics:
    data = mujoco.MjData(theirs)
    M = np.zeros((STATES, theirs.nv, theirs.nv))
    C, passive, a = np.zeros((3, STATES, theirs.nv))
    for k in range(STATES if theirs.nv else 0):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q[k], v[k], tau[k]
        mujoco.mj_forward(theirs, data)
        mujoco.mj_fullM(theirs, data, M[k])
        lift = data.qfrc_gravcomp  # held among the passive forces there, a weaker gravity here
        C[k], passive[k], a[k] = data.qfrc_bias - lift, data.qfrc_passive - lift, data.qacc_smooth
    return Dynamics(M, C, passive, a)


def geared(tree: Model) -> Model:
    """The tree with more armature on slides and hinges."""
    more = {
        f"{joint.name}.armature": [joint.body.armature[0] + ARMATURE]
        for joint in tree.joints
        if joint.kind in ("revolute", "prismatic")
    }
    return tree.with_values(more, inertia="as_given")


def constraint_error(model: Model, theirs: Any) -> float:
    """How far MuJoCo sees its equalities violated where our couplings hold [rad or m]; for a loop joint, how
    far the gap between its ends [m] differs from MuJoCo's.
    """
    if not (model.couplings or model.loops):
        return 0.0
    tree = model.tree()
    x = np.random.default_rng(tree.nv).uniform(-1.2, 1.2, (STATES, tree.nv))
    q = np.array([integrate(tree, tree.neutral(), row) for row in x])
    q_full = np.stack(tree.expand_q(scalars(q)), axis=1)
    q_mj, _ = convert_state(tree.uncoupled(), q_full, source="dalembert", target="mujoco")
    poses = [X.homogeneous() for X in algorithms.forward_kinematics(tree, scalars(q))]
    theirs.opt.disableflags = BESIDES_EQUALITIES
    worst = 0.0
    data = mujoco.MjData(theirs)
    for k in range(STATES):
        data.qpos[:] = q_mj[k]
        mujoco.mj_forward(theirs, data)
        rows = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        loops = iter(model.loops)
        for e in np.flatnonzero(theirs.eq_active0):
            violation = data.efc_pos[rows & (data.efc_id == e)]
            assert violation.size, "MuJoCo does not enforce an active equality"
            if theirs.eq_type[e] in LOOP_EQUALITIES:
                gap = loop_gap(next(loops), [np.array(dense(X)[k]) for X in poses])
                worst = max(worst, abs(float(np.linalg.norm(violation[:3])) - gap))
            else:
                worst = max(worst, float(np.abs(violation).max(initial=0.0)))
    return worst


def loop_gap(loop: Any, poses: list[Array]) -> float:
    """The distance between the ends of a loop joint."""
    ends = []
    for body, placement in (
        (loop.predecessor, loop.placement_predecessor),
        (loop.successor, loop.placement_successor),
    ):
        X = np.eye(4) if body < 0 else poses[body]
        ends.append(X @ np.array([*placement.p, 1.0]))
    return float(np.linalg.norm(ends[0] - ends[1]))


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
