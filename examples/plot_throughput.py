"""
Throughput and the size of a batch
==================================

Each SIMD lane carries one sample, so the cost of a call is spread over the rows of a batch. This example
measures forward dynamics of three bundled robots on one thread of the machine that built this page.
"""

# %%
# The clock runs around the call a user would make; the best of a few repetitions is kept.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da

da.set_num_threads(1)
sizes = [1, 2, 4, 8, 16, 64, 256, 1024, 4096]
rng = np.random.default_rng(0)


def rate(model, rows):
    """Samples per second of forward dynamics on so many rows."""
    states = [model.random_state(rng) for _ in range(min(rows, 64))]
    q, v = (np.resize(np.array(part), (rows, len(part[0]))) for part in zip(*states))
    tau, a = np.zeros_like(v), np.empty_like(v)
    da.forward_dynamics(model, q, v, tau, out=a)
    best = np.inf
    for _ in range(7):
        calls = max(1, 4096 // rows)
        start = perf_counter()
        for _ in range(calls):
            da.forward_dynamics(model, q, v, tau, out=a)
        best = min(best, (perf_counter() - start) / calls)
    return rows / best


# %%
# A sample costs least once the lanes are full and the cost of the call is spread over many of them.

figure, axes = plt.subplots(figsize=(7, 4.5))
for name in ("double_pendulum", "arm6", "humanoid"):
    robot = getattr(da.models, name)()
    axes.loglog(sizes, [rate(robot, rows) for rows in sizes], "o-", label=f"{name}, nv {robot.nv}")
axes.set(xlabel="rows in the batch", ylabel="forward dynamics, samples per second")
axes.grid(alpha=0.3)
axes.legend()
figure.tight_layout()
plt.show()
