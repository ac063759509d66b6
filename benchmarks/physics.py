"""Every law that simulations must keep, by experiment: what it says, what was found, and the bar.

Inclines, rolling, rebound, stacks, a humanoid's overlaps, the work of contact, momenta, the orders of
integrators, energy over a million steps, MuJoCo beside, and what bad input is told; rigid and compliant
contact, masses from 0.1 to 1000 kg, sizes from 1 cm to 2 m, steps from 1 to 10 ms. The exit code is 1 where
a bar is missed.

    python benchmarks/physics.py [--only incline,stack]
"""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
import warnings

import physics_contact
import physics_drops
import physics_flight
import physics_friction
import physics_peer
import physics_rolling
from physics_findings import Finding
from timing import machine, table

from dalembert.simulation import SimulationWarning

LONGEST = 60
"""Characters of a cell; what is longer is said below the table."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="experiments whose names have one of these words")
    words = parser.parse_args().only.split(",")
    warnings.simplefilter("ignore", SimulationWarning)
    begun = time.perf_counter()
    experiments = [
        item
        for module in (
            physics_contact,
            physics_friction,
            physics_rolling,
            physics_drops,
            physics_flight,
            physics_peer,
        )
        for item in module.experiments()
        if any(word in item[0] for word in words)
    ]
    found: list[Finding] = []
    for k, (name, findings) in enumerate(experiments):
        print(f"[{k + 1}/{len(experiments)}] {time.perf_counter() - begun:4.0f} s  {name}", file=sys.stderr)
        found += findings
    print(f"{machine()}, {time.perf_counter() - begun:.0f} s\n")
    rows = [
        [item.law, item.expected, shortened(item.found), item.bar, "yes" if item.holds else "NO"]
        for item in found
    ]
    print(table(["law", "expected", "found", "bar", "holds"], rows, names=3), "\n")
    for item in found:
        if len(item.found) > LONGEST:
            print(textwrap.fill(f"{item.law}: {item.found}", 110, subsequent_indent="    "))
    missed = [item.law for item in found if not item.holds]
    print("\nEvery bar is met." if not missed else "\nNot met: " + "; ".join(missed))
    return bool(missed)


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


if __name__ == "__main__":
    raise SystemExit(main())
