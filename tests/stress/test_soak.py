"""A process that makes many models and functions and drops them stays as small as it was.

Machine code, traces and whatever else is made for a model or for a function of the caller's ends with it.
Each test runs in a process of its own, so that its memory is not that of other tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.stress.amounts import amount

KILOBYTES_EACH = 5.0
"""The bound on the growth of resident memory [kB] for each model or function that was made and dropped. It is
0.5 kB for models and 2 kB for functions; 20 kB and more were left by each machine code that was dropped."""

SECONDS = 3000
"""Time-out of one process."""

PREAMBLE = """
import gc
import numpy as np
import dalembert as da

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1000.0

def growth(make, count):
    for k in range(count):
        make(k)
    before = resident()
    for k in range(count, 2 * count):
        make(k)
    return resident() - before
"""

MODELS = """
def make(k):
    model = da.models.pendulum(length=1.0 + 1e-4 * (k % DIFFERENT))
    q, v, tau = np.array([0.1]), np.array([0.0]), np.array([0.0])
    da.forward_dynamics(model, q, v, tau)
    da.forward_dynamics(model, np.zeros((16, 1)), np.zeros((16, 1)), np.zeros((16, 1)))
    if k % 10 == 0:
        da.rollout(model, q, v, lambda model, t, q, v: [-0.1 * k * v[0]], steps=2, dt=0.01)
"""

FUNCTIONS = """
MODEL = da.models.pendulum()

def make(k):
    observe = {"angle": lambda model, t, q, v: (1.0 + k) * q[0]}
    servo = da.control.Servo(kp=1.0, kd=1.0, q_ref=lambda model, t: [0.001 * k])
    da.rollout(MODEL, [0.0], [0.0], lambda model, t, q, v: [0.01 * k], steps=2, dt=0.01, observe=observe)
    da.rollout(MODEL, [0.0], [0.0], servo, steps=2, dt=0.01)
"""

LINKED = """
def make(k):
    builder = da.ModelBuilder()
    for name in "ab":
        inertia = da.RigidInertia(1.0, (0, 0, 0), np.eye(3))
        builder.add_body(name, "world", da.Prismatic((1, 0, 0)), inertia=inertia)
    builder.add_constraint(lambda model, q: [q[1] - (1.0 + k) * q[0]], name="gear")
    model = builder.build()
    da.forward_dynamics(model, np.zeros(2), np.zeros(2), np.zeros(2))
    da.compile(lambda model, q: [k * q[0]], model).jacobian("q")(np.zeros(2))
"""


def grown(program: str, count: int, folder: Path) -> float:
    """Return the growth [kB] of a process that makes `count` things after as many to warm up."""
    # In the short form most models are equal to earlier ones and take their machine code from the disk cache.
    different = f"DIFFERENT = {amount(4, 1 << 20)}\n"
    text = PREAMBLE + different + textwrap.dedent(program) + f"\nprint(growth(make, {count}))\n"
    environment = os.environ | {"DALEMBERT_CACHE_DIR": str(folder), "DALEMBERT_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=SECONDS, env=environment
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="resident memory is read from /proc")
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize(
    ("program", "short", "whole", "allowance"),
    [(MODELS, 150, 1000, 300.0), (FUNCTIONS, 10, 300, 2000.0), (LINKED, 3, 300, 2000.0)],
    ids=["models", "functions", "models with functions"],
)
def test_what_is_dropped_leaves_no_memory_behind(program, short, whole, allowance, tmp_path):
    # `allowance` [kB]: pages that allocators take once, and that the short forms have not all taken before.
    count = amount(short, whole)
    assert grown(program, count, tmp_path) < KILOBYTES_EACH * count + allowance
