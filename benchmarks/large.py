"""Chains of 1,000 and 10,000 bodies: first call, time per body, and Pinocchio beside.

Forward dynamics in a batch of 64 on one thread. Pinocchio's workspace for n joints holds four tensors of n^3
numbers, 32 GB for 1,000, so it runs the longest chain that this machine's memory allows (at most 1,000) and
is compared by its time per body, which only grows with the length.

The accuracy shown is that of the equation of motion, |M a + b - tau| over the largest |M a|, since the
acceleration itself is ill-conditioned in a long chain (Featherstone 2008 section 10.2).
"""

import os
import sys
from time import perf_counter

import numpy as np
from contest import Contest, from_peer, one_thread, pinocchio
from timing import interleaved_medians, machine, table

import dalembert as da

BATCH = 64
AXES = np.eye(3)


def main() -> int:
    """Print the table; return 1 where a bar is missed."""
    if pinocchio() is None:
        print("large.py needs the peer: pip install 'dalembert[pinocchio]'", file=sys.stderr)
        return 1
    print(f"Long chains on {machine()}, forward dynamics, batch of {BATCH}, one thread\n")
    with one_thread():
        shared = measure(from_peer("", peer_chain(affordable()), BATCH))
        thousand, ten_thousand = measure(own_chain(1_000)), measure(own_chain(10_000))
    headers = ["bodies", "first call s", "us/sample", "ns/body", "Pinocchio ns/body", "residual"]
    print(table(headers, [row(measured) for measured in (shared, thousand, ten_thousand)]))
    ratio, growth = shared["peer"] / thousand["body"], ten_thousand["body"] / thousand["body"]
    print(f"\nPinocchio at {shared['bodies']} over ours at 1,000, per body: {ratio:.1f}x (bar 2x)")
    print(f"time per body, 10,000 over 1,000: {growth:.2f} (bar 1.5)")
    bars = {
        "first call within 10 s": thousand["first"] <= 10.0,
        "2x Pinocchio": ratio >= 2.0,
        "time per body": growth <= 1.5,
        "residual": max(m["residual"] for m in (shared, thousand, ten_thousand)) < 1e-10,
    }
    missed = [name for name, met in bars.items() if not met]
    print("\nEvery bar is met." if not missed else "\nMissed: " + "; ".join(missed))
    return int(bool(missed))


def affordable() -> int:
    """The longest chain, up to 1,000, for which three copies of the peer's workspace fill half of the free
    memory.
    """
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(1_000, int((free / 2 / 3 / 32) ** (1 / 3)) // 50 * 50)


def measure(contest: Contest) -> dict:
    """First call [s], times per sample [us] and per body [ns], and the residual of the equation."""
    model, bodies = contest.model, len(contest.model.bodies)
    start = perf_counter()
    da.forward_dynamics(model, contest.q, contest.v, contest.tau)
    first = perf_counter() - start
    q, v, tau = contest.q[:4], contest.v[:4], contest.tau[:4]
    a = da.forward_dynamics(model, q, v, tau)
    produced = da.inverse_dynamics(model, q, v, a)
    largest = np.abs(produced - da.inverse_dynamics(model, q, v, 0.0 * a)).max()
    timers = {"ours": contest.batch("forward dynamics", out=True)}
    if contest.peer is not None:
        timers["peer"] = contest.peer.batch("forward dynamics")
    times = interleaved_medians(timers, rounds=5, seconds=0.1)
    return {
        "bodies": bodies,
        "first": first,
        "sample": times["ours"] / BATCH * 1e6,
        "body": times["ours"] / BATCH / bodies * 1e9,
        "peer": times["peer"] / BATCH / bodies * 1e9 if "peer" in times else None,
        "residual": np.abs(produced - tau).max() / largest,
    }


def row(measured: dict) -> list[str]:
    """One line of the table."""
    peer = measured["peer"]
    return [
        f"{measured['bodies']:,}",
        f"{measured['first']:.2f}",
        f"{measured['sample']:.0f}",
        f"{measured['body']:.1f}",
        f"{peer:.1f}" if peer else "",
        f"{measured['residual']:.0e}",
    ]


def links(bodies: int):
    """Axis, rotation vector of the placement, and principal inertia of each link: turned at random, so it
    curls up.
    """
    rng = np.random.default_rng(0)
    for number in range(bodies):
        yield AXES[number % 3], rng.uniform(-1.0, 1.0, 3), rng.uniform(0.02, 0.03, 3)


def peer_chain(bodies: int):
    """The chain as a Pinocchio model."""
    pin = pinocchio()
    model, parent = pin.Model(), 0
    kinds = [pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ]
    for number, (_, turn, inertia) in enumerate(links(bodies)):
        place = pin.SE3(pin.exp3(turn), np.array([0.0, 0.0, 0.1 if number else 0.0]))
        parent = model.addJoint(parent, kinds[number % 3](), place, f"joint_{number}")
        body = pin.Inertia(1.0, np.array([0.0, 0.0, 0.05]), np.diag(inertia))
        model.appendBodyToJoint(parent, body, pin.SE3.Identity())
    return model


def own_chain(bodies: int) -> Contest:
    """The chain as a model of ours, with random states and no peer."""
    builder, parent = da.ModelBuilder(), "world"
    for number, (axis, turn, inertia) in enumerate(links(bodies)):
        place = da.Transform.from_rotation_translation(rotation(turn), (0.0, 0.0, 0.1 if number else 0.0))
        body = da.RigidInertia(1.0, (0.0, 0.0, 0.05), np.diag(inertia))
        builder.add_body(f"body_{number}", parent, da.Revolute(axis=axis), placement=place, inertia=body)
        parent = f"body_{number}"
    q = np.random.default_rng(1).uniform(-3.14, 3.14, (BATCH, bodies))
    v, a, tau = np.random.default_rng(2).standard_normal((3, BATCH, bodies))
    return Contest("", builder.build(), q, v, a, tau, None)


def rotation(vector):
    """R of a rotation vector (Rodrigues)."""
    angle = np.linalg.norm(vector)
    x, y, z = vector / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)


if __name__ == "__main__":
    sys.exit(main())
