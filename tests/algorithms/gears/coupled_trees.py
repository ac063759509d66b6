"""Random trees with random couplings: chains of couplings, differentials, couplings across branches."""

from __future__ import annotations

import numpy as np
from tests.algorithms.trees import JOINTS, inertia, place

from dalembert.model.builder import ModelBuilder
from dalembert.model.model import Model

ONE_FREEDOM = ("revolute", "prismatic", "helical", "reversed")
OTHERS = ("spherical", "universal", "fixed", "cylindrical", "planar")


def coupled_tree(seed: int, n: int = 9, *, root: str | None = None, massless: bool = False) -> Model:
    """n bodies, up to half of whose one-freedom joints follow others, by one or two terms each.

    With an odd seed joints follow their neighbours, so that there are many small clusters; else any joints.
    `massless`: dependent leaves have no inertia.
    """
    rng = np.random.default_rng(seed)
    builder = ModelBuilder(gravity=(0.7, -0.4, -9.5))
    kinds = [str(rng.choice(ONE_FREEDOM if i % 3 else OTHERS)) for i in range(n)]
    if root:
        kinds[0] = root
    lowest = 0 if root == "free" else -1
    parents = [-1] + [int(rng.integers(max(lowest, i - 4), i)) for i in range(1, n)]
    order = [int(i) for i in rng.permutation([i for i, kind in enumerate(kinds) if kind in ONE_FREEDOM])]
    followers = order[: len(order) // (3 if seed % 2 else 2)]
    for i, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        empty = massless and i in followers and i not in parents
        builder.add_body(
            f"b{i}",
            "world" if parent < 0 else f"b{parent}",
            JOINTS[kind](rng),
            placement=place(rng),
            inertia=None if empty else inertia(rng),
            armature=0.3 if kind in ONE_FREEDOM and not empty and rng.random() < 0.5 else 0.0,
            damping=0.2,
        )
    for k, i in enumerate(followers):
        # Followers may follow earlier followers (a chain), and one or two joints (a differential).
        leaders = [j for j in order if j not in followers[k:]]
        if seed % 2:
            leaders = sorted(leaders, key=lambda j, i=i: abs(j - i))[:2]
        chosen = rng.choice(leaders, size=min(len(leaders), int(rng.integers(1, 3))), replace=False)
        terms = {f"b{j}": float(rng.uniform(0.5, 2.0) * rng.choice([-1.0, 1.0])) for j in chosen}
        builder.add_coupling(f"c{k}", {**terms, f"b{i}": -1.0}, offset=float(rng.normal()))
    return builder.build()
