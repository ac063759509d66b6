"""Closed-loop forward dynamics against Pinocchio's constrained dynamics, in one process, on one thread.

Both engines get the same trees and the same closed, moving states in a batch of 4,096; loops are closed by
ball joints (Pinocchio's 3-D rigid constraints) or welds (6-D). Pinocchio has no revolute closure: the
four-bar's pin is a ball there, in the plane the same motion. Prints microseconds a sample, the best of
several runs, and the median and largest difference of the accelerations, relative to the largest of a sample.

    python benchmarks/loops.py [--rows 4096]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pinocchio as pin

import dalembert as da
from dalembert.spatial import Transform


def revolute(axis: tuple[float, float, float]) -> pin.JointModel:
    return pin.JointModelRevoluteUnaligned(np.array(axis))


def placement(X: Transform) -> pin.SE3:
    return pin.SE3(np.array(X.R.to_list(), float), np.array(X.p.to_list(), float))


def peer_tree(model: da.Model) -> tuple[pin.Model, list[int]]:
    """The model's spanning tree in Pinocchio: its joints by body; universal ones are two hinges."""
    peer = pin.Model()
    peer.gravity.linear = np.array(model.gravity.to_list(), float)
    joints: list[int] = []
    for body in model.bodies:
        joint = body.joint
        if isinstance(joint, da.Free):
            made = pin.JointModelFreeFlyer()
        elif isinstance(joint, da.Revolute):
            made = revolute(joint.axis.to_list())
        elif isinstance(joint, da.Prismatic):
            made = pin.JointModelPrismaticUnaligned(np.array(joint.axis.to_list(), float))
        elif isinstance(joint, da.joints.Universal):
            made = pin.JointModelComposite(2)
            for axis in (joint.axis1, joint.axis2):
                made.addJoint(revolute(axis.to_list()))
        else:
            raise SystemExit(f"no Pinocchio joint for {joint}")
        parent = joints[body.parent] if body.parent >= 0 else 0
        joints.append(peer.addJoint(parent, made, placement(body.placement.as_transform()), body.joint_name))
        inertia = body.inertia
        at_com = np.array(inertia.inertia_at_com.to_list(), float)
        matrix = pin.Inertia(float(inertia.mass), np.array(inertia.com.to_list(), float), at_com)
        peer.appendBodyToJoint(joints[-1], matrix, pin.SE3.Identity())
    return peer, joints


def closures(model: da.Model, peer: pin.Model, joints: list[int]) -> pin.StdVec_RigidConstraintModel:
    found = pin.StdVec_RigidConstraintModel()
    for loop in model.loops:
        kind = pin.ContactType.CONTACT_6D if isinstance(loop.joint, da.Fixed) else pin.ContactType.CONTACT_3D
        ends = [joints[i] if i >= 0 else 0 for i in (loop.predecessor, loop.successor)]
        places = [placement(X.as_transform()) for X in (loop.placement_predecessor, loop.placement_successor)]
        found.append(
            pin.RigidConstraintModel(
                kind, peer, ends[0], places[0], ends[1], places[1], pin.ReferenceFrame.LOCAL
            )
        )
    return found


def to_peer_q(model: da.Model, q: np.ndarray) -> np.ndarray:
    """Quaternions of free joints in Pinocchio's order, vector first; the rest stands in the same order."""
    result = q.copy()
    for body in model.bodies:
        if isinstance(body.joint, da.Free):
            at = body.q_slice.start + 3
            result[..., at : at + 4] = q[..., [at + 1, at + 2, at + 3, at]]
    return result


def swap_halves(model: da.Model, v: np.ndarray) -> np.ndarray:
    """Velocities, forces and accelerations of free joints: angular and linear parts change places."""
    result = v.copy()
    for body in model.bodies:
        if isinstance(body.joint, da.Free):
            at = body.v_slice.start
            result[..., at : at + 6] = v[..., [at + 3, at + 4, at + 5, at, at + 1, at + 2]]
    return result


def closed_states(model: da.Model, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    q = da.integrate(model, np.tile(model.neutral(), (rows, 1)), 0.1 * rng.normal(size=(rows, model.nv)))
    q, v = da.constraints.close_loops(model, q, rng.normal(size=(rows, model.nv)))
    return q, v, rng.normal(size=(rows, model.nv))


def best(run: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def contest(name: str, model: da.Model, rows: int) -> None:
    q, v, tau = closed_states(model, rows)
    out = np.empty_like(v)
    ours = da.forward_dynamics(model, q, v, tau)
    t_ours = best(lambda: da.forward_dynamics(model, q, v, tau, out=out), 30) / rows
    peer, joints = peer_tree(model)
    data = peer.createData()
    constraints = closures(model, peer, joints)
    constraint_data = pin.StdVec_RigidConstraintData()
    for item in constraints:
        constraint_data.append(item.createData())
    settings = pin.ProximalSettings(1e-12, 1e-12, 20)
    pin.initConstraintDynamics(peer, data, constraints, constraint_data)
    q_peer, v_peer, tau_peer = to_peer_q(model, q), swap_halves(model, v), swap_halves(model, tau)
    theirs = np.empty_like(v)

    def batch() -> None:
        for k in range(rows):
            theirs[k] = pin.constraintDynamics(
                peer, data, q_peer[k], v_peer[k], tau_peer[k], constraints, constraint_data, settings
            )

    t_theirs = best(batch, 6) / rows
    expected = swap_halves(model, theirs)  # dv/dt of a free joint is component by component in both
    error = np.abs(expected - ours).max(axis=1) / np.abs(ours).max(axis=1)
    if error.max() > 1e-8:
        raise SystemExit(f"{name}: the engines disagree by {error.max():.1e}")
    figures = f"{t_ours * 1e6:10.3f} {t_theirs * 1e6:10.3f} {t_theirs / t_ours:10.1f}"
    errors = f"{np.median(error):10.1e} {error.max():10.1e}"
    print(f"{name:28} {model.nv:3} {len(da.constraints.constraint_error(model, q[0])):3} {figures} {errors}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4096)
    rows = parser.parse_args().rows
    da.set_num_threads(1)
    print(f"batch of {rows}, one thread, float64, microseconds a sample\n")
    columns = " ".join(f"{name:>10}" for name in ("dalembert", "Pinocchio", "ratio", "median", "worst"))
    print(f"{'model':28} {'nv':>3} {'nc':>3} {columns}")
    contest("stewart", da.models.stewart(), rows)
    contest("stewart, loop closure", da.models.stewart(closure=True), rows)
    contest("four_bar (pin as a ball)", da.models.four_bar(), rows)


if __name__ == "__main__":
    main()
