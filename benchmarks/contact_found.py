"""Contacts that a step finds, beside an exhaustive evaluation of all pairs of shapes, and beside coal.

A step skips pairs of shapes that are far apart. Here the geometry of a step is compiled once and evaluated
on random states of the models of `contact_models.py`, with the step's own time and with one in which bodies
might travel for kilometres, so that no pair is far. Every pair that overlaps in the second must overlap in
the first, by the same depth. Joints are anywhere within their limits, roots from below the ground to above.

Each pair is then given to coal, another code, which finds the signed distance of two convex solids. A pair
that coal finds to overlap by more than `TOUCH` must be one that the step found. Depths are compared up to
`SHALLOW`: deeper in, iterated depths may exceed the least translation that separates two solids
(docs/guides/distances.md). Height fields are left out, which coal defines otherwise.

Columns: pairs of shapes; overlaps that the exhaustive evaluation found in all states, how many of them the
step missed, and the largest difference of depth [m]; overlaps that coal found, how many of them the step
missed, and how many only the step has; of the shallow ones the median, 99 % and largest difference of
depth [m]. The exit status is 1 if an overlap is missed or depths of the step and of all pairs differ.

    python benchmarks/contact_found.py [NAMES …] [--states 1000]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from contact_models import MODELS, lifts, load, reach, step_of
from timing import machine, table

import dalembert as da
from dalembert import scalar
from dalembert.algorithms.kinematics import body_velocities, forward_kinematics
from dalembert.contact.collision import Scene
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP
from dalembert.contact.pairs import ContactPair, pairs_of

Array = np.ndarray[Any, np.dtype[np.float64]]

EXHAUSTIVE_STEP = 1e6
"""[s] In a step of this length all bodies may meet: even at rest they may travel for 1,000 km."""

TOUCH = 1e-6
"""[m] Overlaps below this are not compared with coal's, whose iteration ends at 1e-9 m or at rounding."""

SHALLOW = 0.01
"""[m] Depths up to this are compared with coal's."""

SAME_DEPTH = 1e-12
"""[m] Rounding of depths that the same code finds."""


class Findings(NamedTuple):
    """What was found on the states of one model, as the columns of the table."""

    pairs: int
    overlaps: int
    missed: int
    difference: float
    coal_overlaps: int
    coal_missed: int
    only_ours: int
    depths: Array
    """[m] Differences of shallow depths from coal's."""


def scattered_states(model: Any, states: int, seed: int = 0) -> tuple[Array, Array]:
    """Return random states: joints within their limits, roots turned at random, from below the ground up to
    where the figure does not reach it."""
    rng = np.random.default_rng(seed)
    drawn = [model.random_state(rng) for _ in range(states)]
    q, v = (np.stack(part) for part in zip(*drawn, strict=True))
    for joint in model.joints:
        if joint.kind == "free":
            q[:, joint.q_slice.start : joint.q_slice.start + 2] = rng.uniform(-0.1, 0.1, (states, 2))
    for place, carried in lifts(model):
        q[:, place] = reach(model, q[0], carried) * rng.uniform(-0.1, 1.0, states)
    return q, v


def step_geometry(model: Any, scene: Scene) -> Callable[[Array, Array, float], Array]:
    """Return the function from states and the length of a step to the gaps of all points (states, points);
    points that the step does not visit are `ABSENT_POINT_GAP` apart."""

    def gaps(tree: Any, q: Any, v: Any, dt: Any) -> list[Any]:
        found = scene.contacts(forward_kinematics(tree, q), body_velocities(tree, q, v), dt[0], q)
        every = scalar.rows(scene.point_count, like=q)
        absent = scalar.Write(every, lambda i: [(i, ABSENT_POINT_GAP)])
        visited = scalar.Write(found.near, lambda i: [(found.number[i], found.points[i].gap)])
        written = every.write([absent, visited])
        return [written.at(k) for k in range(scene.point_count)]

    compiled = da.compile(gaps, model, inputs={"dt": 1})
    return lambda q, v, dt: np.asarray(compiled(q, v, np.full((len(q), 1), dt)))


def least_of_pairs(gaps: Array, scene: Scene) -> Array:
    """Return the least gap of each pair (states, pairs) from those of all points."""
    begins = np.searchsorted(scene.pair_of_point, np.arange(len(scene.pairs)))
    return np.minimum.reduceat(gaps, begins, axis=1)


def coal_distances(model: Any, pairs: Sequence[ContactPair], q: Array) -> Array:
    """Return coal's signed distances (states, pairs) [m]; NaN where it has no such shape."""
    import coal

    solids: dict[int, Any] = {}
    for pair in pairs:
        for side in (pair.first, pair.second):
            solids.setdefault(id(side.shape), coal_shape(side.shape))
    request = coal.DistanceRequest()
    request.gjk_tolerance = request.epa_tolerance = 1e-9
    request.gjk_max_iterations = request.epa_max_iterations = 500
    found = np.full((len(q), len(pairs)), np.nan)
    for row, state in zip(found, q, strict=True):
        poses, placed = da.forward_kinematics(model, state), {}
        for number, pair in enumerate(pairs):
            ends = []
            for side in (pair.first, pair.second):
                key = side.body, id(side.shape)
                if key not in placed:
                    own = side.shape.placement
                    R, p = np.array([*own.R], float).reshape(3, 3), np.array([*own.p], float)
                    if side.body >= 0:
                        pose = poses[model.bodies[side.body].name]
                        R, p = pose.rotation @ R, pose.rotation @ p + pose.translation
                    placed[key] = coal.Transform3s(R, p)
                ends += [solids[id(side.shape)], placed[key]]
            if ends[0] is not None and ends[2] is not None:
                row[number] = coal.distance(*ends, request, coal.DistanceResult())
    return found


def coal_shape(shape: Any) -> Any:
    """Return a shape as coal has it, or None."""
    import coal

    match shape.kind:
        case "sphere":
            return coal.Sphere(shape.radius)
        case "capsule":
            return coal.Capsule(shape.radius, shape.length)
        case "cylinder":
            return coal.Cylinder(shape.radius, shape.length)
        case "box":
            return coal.Box(*shape.size)
        case "ellipsoid":
            return coal.Ellipsoid(*shape.radii)
        case "plane":
            return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
        case "convex_mesh":
            vertices, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
            for vertex in shape.vertices:
                vertices.append(np.array(vertex))
            for face in shape.faces:
                triangles.append(coal.Triangle(*face))
            return coal.Convex(vertices, triangles)
    return None


def findings(model: Any, dt: float, states: int) -> Findings:
    """Return what a step finds on random states, beside all pairs and coal."""
    pairs = pairs_of(model)
    scene = Scene.of(model, pairs)
    q, v = scattered_states(model, states)
    gaps = step_geometry(model, scene)
    found, expected = (least_of_pairs(gaps(q, v, step), scene) for step in (dt, EXHAUSTIVE_STEP))
    overlaps = expected < 0.0
    missed = overlaps & (found >= 0.0)
    difference = np.abs(found - expected)[overlaps & ~missed].max(initial=0.0)
    coal = coal_distances(model, pairs, q)
    theirs = coal < -TOUCH
    shallow = theirs & (coal > -SHALLOW) & (found < 0.0)
    return Findings(
        len(pairs),
        int(overlaps.sum()),
        int(missed.sum()),
        float(difference),
        int(theirs.sum()),
        int((theirs & (found >= 0.0)).sum()),
        int(((coal > TOUCH) & (found < -TOUCH)).sum()),
        np.sort(np.abs(found - coal)[shallow]),
    )


def main() -> int:
    """Print the table; 1 if an overlap is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(MODELS), metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--states", type=int, default=1000)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"Contacts found on {chosen.states:,} random states a model, {machine()}\n")
    rows, wrong = [], list[str]()
    for name in chosen.names:
        model = load(name)
        found = findings(model, step_of(model), chosen.states)
        depths = [
            f"{np.quantile(found.depths, part):.1e}" if len(found.depths) else "–"
            for part in (0.5, 0.99, 1.0)
        ]
        counts = [found.pairs, found.overlaps, found.missed]
        more = [found.coal_overlaps, found.coal_missed, found.only_ours]
        rows.append([name, *map(str, counts), f"{found.difference:.1e}", *map(str, more), *depths])
        print("  ".join(rows[-1]), flush=True)
        if found.missed or found.coal_missed or found.difference > SAME_DEPTH:
            wrong.append(name)
    heads = [
        "model",
        "pairs",
        "overlaps",
        "missed",
        "depth [m]",
        "coal",
        "missed",
        "only ours",
        "depth: median",
        "99 %",
        "most",
    ]
    print("\n" + table(heads, rows), "\n")
    print("no contact is missed" if not wrong else "missed or different: " + ", ".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
