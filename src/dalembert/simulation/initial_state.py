"""Checks of a rollout: finite numbers, closed loops and overlaps at the start, limits at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dalembert.algorithms.constraints import constraint_equations
from dalembert.algorithms.open_tree import is_constrained
from dalembert.api.declared import spring_lengths
from dalembert.call.arguments import Array
from dalembert.contact.pairs import ContactPair, pair_names
from dalembert.errors import ArgumentError, StateError
from dalembert.model.body import bounds_of
from dalembert.model.model import Model
from dalembert.model.topology import WORLD
from dalembert.simulation.distances import compiled_for_pairs

MAX_LOOP_GAP = 1e-2
"""Gaps [m, rad] up to which loops count as closed: steps leave smaller gaps and correct them."""

MAX_RELATIVE_GAP_RATE = 1e-2
"""Gap rates up to this count as zero: a fraction of the largest velocity, or of 1 m/s or rad/s if larger."""

MIN_REPORTED_EXCESS = 1e-3
"""Joints that end this far [rad, m] beyond a limit that does not act are reported."""

MIN_REPORTED_OVERLAP = 1e-3
"""Deeper overlaps [m] at the start are reported."""


def require_finite(name: str, array: Array) -> None:
    """Refuse a start that is NaN or infinite."""
    if not np.isfinite(array).all():
        sample = np.argwhere(~np.isfinite(array).all(axis=-1))
        place = f" of sample {tuple(sample[0].tolist())}" if array.ndim > 1 else ""
        raise ArgumentError(f"{name}{place} holds numbers that are not finite")


def require_closed_loops(
    model: Model,
    q: Array,
    v: Array,
    time: Array,
    parameters: Mapping[str, Array] | None = None,
    *,
    flag: bool = False,
) -> Array:
    """Refuse states in which a loop is open or about to open, or return which are so with `flag`."""
    found = np.zeros(q.shape[:-1], bool)
    if not is_constrained(model) or model.closure is not None:
        return found
    times = np.broadcast_to(time, q.shape[:-1])
    values, check = parameters or {}, "off" if flag else "raise"

    def equations(tree: Model, q: Any, v: Any, time: Any) -> Any:
        found = constraint_equations(tree, q, v, time=time if tree.time_dependent else None)
        return list(found.position_error), list(found.velocity_error)

    shapes = {"q": (model.nq,), "v": (model.nv,), "time": ()}
    kernel = compiled_for_pairs(model, "loop equations", equations, shapes, parameters=tuple(values))
    gap, rate = kernel(q, v, times, parameters=values or None, check=check)
    gap, rate = np.abs(gap).max(axis=-1, initial=0.0), np.abs(rate).max(axis=-1, initial=0.0)
    fast = MAX_RELATIVE_GAP_RATE * np.maximum(np.abs(v).max(axis=-1, initial=0.0), 1.0)
    for wrong, number, fact in (
        (gap > MAX_LOOP_GAP, gap, "loops or constraints are open by {:.3g} m or rad"),
        (rate > fast, rate, "the velocities open loops or break constraints at {:.3g} m/s or rad/s"),
    ):
        found |= wrong
        if np.any(wrong) and not flag:
            sample = tuple(np.argwhere(wrong)[0].tolist())
            place = f" of sample {sample}" if q.ndim > 1 else ""
            raise StateError(
                f"in the start{place} {fact.format(float(number[sample]))}; "
                "da.constraints.close_loops(model, q, v) gives the nearest state that fits"
            )
    return found


def overlap_message(found: Array, names: Callable[[], Sequence[tuple[str, str]]]) -> str | None:
    """Return a message about shapes that overlap at the start, or None; `found (…, 2)`: the least gap of each
    sample and the number of its point, `names` of the points."""
    gap = found[..., 0]
    deep = gap < -MIN_REPORTED_OVERLAP
    if not np.any(deep):
        return None
    place = np.unravel_index(int(np.nanargmin(gap)), gap.shape)
    first, second = names()[int(found[(*place, 1)])]
    of = f" of {deep.sum()} samples" if gap.ndim else ""
    sample = f" in sample {tuple(int(x) for x in place)}" if gap.ndim else ""
    return (
        f'shapes{of} overlap at the start; deepest are "{first}" and "{second}", '
        f"by {-gap[place] * 1e3:.1f} mm{sample}"
    )


def exclusion_remedy(model: Model, found: Array, pair_of_point: Callable[[int], ContactPair]) -> str:
    """Return how to let parts of one figure pass through each other that overlap at the start, "" if none do.

    Hulls of meshes as they are drawn often overlap in every pose, so that position correction turns joints to
    and fro: those of Solo12 by 0.05 rad in a step.
    """
    roots: list[int] = []
    for body in model.bodies:
        roots.append(body.index if body.parent == WORLD else roots[body.parent])
    numbers = np.unique(found[..., 1][found[..., 0] < -MIN_REPORTED_OVERLAP])
    pairs = [pair_of_point(int(number)) for number in numbers]
    own = [
        pair
        for pair in pairs
        if WORLD not in (pair.first.body, pair.second.body)
        and roots[pair.first.body] == roots[pair.second.body]
    ]
    if not own:
        return ""
    names = ", ".join(str(item) for item in dict.fromkeys(pair_names(model, pair) for pair in own))
    return f"; exclude=[{names}] lets parts of one figure pass through each other"


# Limits of joints at the end.


def beyond_limits(trajectory: Any) -> str:
    """Return a message about the joint of one coordinate, or the tendon, that ended farthest beyond its
    limits; "" if none did.
    """
    model: Model = trajectory.model
    if "limits" not in model.functions:  # kept with the model, since each rollout asks
        single = [body for body in model.bodies if body.dependence is None and body.nq == 1]
        ends = [(bounds_of(body, "lower")[0], bounds_of(body, "upper")[0]) for body in single]
        limited = [k for k, (low, high) in enumerate(ends) if low > -np.inf or high < np.inf]
        names = [f'joint "{single[k].joint_name}"' for k in limited]
        tendons = [k for k, spring in enumerate(model.springs) if spring.is_limited]
        names += [f'tendon "{model.springs[k].name}"' for k in tendons]
        ends = [*(ends[k] for k in limited), *(model.springs[k].limits for k in tendons)]
        low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
        model.functions["limits"] = names, [single[k].q_slice.start for k in limited], tendons, low, high
    names, places, tendons, low, high = model.functions["limits"]
    if not names:
        return ""
    end = trajectory.q[..., -1, :].reshape(-1, model.nq)
    found = end[:, places]
    if tendons:
        time = trajectory.time[..., -1].reshape(-1) if model.time_dependent else None
        found = np.concatenate(
            [found, spring_lengths(model, end, time=time, check="off")[:, tendons]], axis=1
        )
    excess = np.maximum(low - found, found - high)
    excess = np.where(np.isfinite(excess), excess, 0.0)
    if not excess.size or excess.max() <= MIN_REPORTED_EXCESS:
        return ""
    k = int(excess.max(axis=0).argmax())
    # No number of the sample, so that warnings of many rollouts are one.
    return f"{names[k]} ended beyond its limits, {low[k]:.4g} to {high[k]:.4g}"


# Values of a model that a rollout was given at run time, for all samples or for each.


def for_frames(model: Model, parameters: Mapping[str, Array]) -> dict[str, Array]:
    """Return values of samples with an axis for their frames."""
    found = {}
    for name, value in parameters.items():
        own = np.ndim(model.value(name))
        found[name] = value if value.ndim == own else np.expand_dims(value, -1 - own)
    return found


def of_samples(
    model: Model, parameters: Mapping[str, Array], batch: tuple[int, ...], key: Any
) -> dict[str, Array]:
    """Return the values of some samples of a batch."""
    found = {}
    for name, value in parameters.items():
        own = value.shape[value.ndim - np.ndim(model.value(name)) :]
        found[name] = value if value.shape == own else np.broadcast_to(value, (*batch, *own))[key]
    return found
