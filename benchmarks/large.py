"""Chains of 1,000 and 10,000 bodies: first call, time per body, and Pinocchio beside, in a batch of 64 on one
thread.

The chain is made in Pinocchio (revolute joints about changing axes, random inertias) and crosses by the
bridge, so that both sides compute the same robot.
"""

import sys
from time import perf_counter

import numpy as np

import dalembert as da
from dalembert.cli.contest import from_peer, one_thread, pinocchio
from dalembert.cli.timing import interleaved_medians, machine, table

BATCH = 64


def main() -> int:
    """Print the table; return 1 where a bar is missed."""
    if pinocchio() is None:
        print("large.py needs the peer: pip install 'dalembert[pinocchio]'", file=sys.stderr)
        return 1
    print(f"Long chains on {machine()}, forward dynamics, batch of {BATCH}, one thread\n")
    rows, missed, per_body = [], [], {}
    with one_thread():
        for bodies, bar in ((1_000, 2.0), (10_000, None)):
            contest = from_peer(f"chain of {bodies}", chain(bodies), BATCH)
            start = perf_counter()
            da.forward_dynamics(contest.model, contest.q[0], contest.v[0], contest.tau[0])
            first = perf_counter() - start
            difference = contest.error("forward dynamics", rows=2)
            timers = {
                "ours": contest.batch("forward dynamics", out=True),
                "peer": contest.peer.batch("forward dynamics"),
            }
            times = interleaved_medians(timers, rounds=5, seconds=0.1)
            ours, theirs = times["ours"] / BATCH * 1e6, times["peer"] / BATCH * 1e6
            per_body[bodies] = ours / bodies
            rows.append(
                [
                    contest.name,
                    f"{first:.2f}",
                    f"{ours:.0f}",
                    f"{1e3 * ours / bodies:.1f}",
                    f"{theirs:.0f}",
                    f"{theirs / ours:.1f}x",
                    f"{bar:g}x" if bar else "",
                    f"{difference:.0e}",
                ]
            )
            if bar and (theirs / ours < bar or first > 10.0):
                missed.append(contest.name)
    headers = ["", "first call s", "us/sample", "ns/body", "Pinocchio us", "ratio", "bar", "difference"]
    print(table(headers, rows))
    growth = per_body[10_000] / per_body[1_000]
    print(f"\ntime per body, 10,000 over 1,000: {growth:.2f} (bar 1.5)")
    if growth > 1.5:
        missed.append("growth")
    print("\nEvery bar is met." if not missed else "\nMissed: " + "; ".join(missed))
    return int(bool(missed))


def chain(bodies: int):
    """A Pinocchio chain that curls up: near-unit links, so that a thousand of them stay well conditioned."""
    pin = pinocchio()
    rng = np.random.default_rng(0)
    model, joints = pin.Model(), [pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ]
    parent = 0
    for number in range(bodies):
        turn = pin.exp3(rng.uniform(-1.0, 1.0, 3))
        place = pin.SE3(turn, np.array([0.0, 0.0, 0.1]) if number else np.zeros(3))
        parent = model.addJoint(parent, joints[number % 3](), place, f"joint_{number}")
        about_com = np.diag(rng.uniform(0.02, 0.03, 3))
        model.appendBodyToJoint(
            parent, pin.Inertia(1.0, np.array([0.0, 0.0, 0.05]), about_com), pin.SE3.Identity()
        )
    return model


if __name__ == "__main__":
    sys.exit(main())
