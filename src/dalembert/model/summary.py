"""The summary of a model as a table of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dalembert.model.body import Body

if TYPE_CHECKING:
    from dalembert.model.model import Model

__all__ = ["summary"]

MAX_ROWS = 400
"""Bodies beyond these are counted, not listed."""
MAX_LISTED = 40
"""Shapes and pairs of bodies beyond these are counted, not listed."""
MAX_DRAWN_DEPTH = 24
"""Deeper bodies are drawn at this depth with their true depth beside the name."""

CONVENTIONS = (
    "spatial vectors: angular first, body coordinates; SI units, radians, z up",
    "quaternions: (w, x, y, z), of the rotation that maps child to parent coordinates",
    "free joint: q = position in the parent, quaternion; v = angular, linear velocity in body coordinates",
    "spherical joint: v = angular velocity in the successor",
    "planar joint: q = (x, y, angle) in the parent, v = (omega, v_x, v_y) in the successor",
)


def summary(model: Model) -> str:
    """Return a table of the tree with joint types, degrees of freedom, slices of q and v, and masses; then
    frames, loops, couplings.
    """
    header = ("body", "joint", "type", "dof", "q", "v", "mass [kg]")
    rows = [
        (drawing + body.name, body.joint_name, body.joint.kind, str(body.nv), _range(body.q_slice, body),
         _range(body.v_slice, body), _number(body.inertia.mass))
        for body, drawing in zip(model.bodies, _drawings(model))
    ]  # fmt: skip
    order = _preorder(model)[:MAX_ROWS]
    gravity = ", ".join(_number(g) for g in model.gravity)
    lines = [
        f"{model.name}: {len(model.bodies)} bodies, nq = {model.nq}, nv = {model.nv}, "
        f"total mass {_number(model.total_mass)} kg, gravity ({gravity}) m/s²",
        f"base: {_base(model)}",
        "",
        *_table(header, [rows[i] for i in order]),
    ]
    if len(rows) > MAX_ROWS:
        lines.append(f"… and {len(rows) - MAX_ROWS} bodies more")
    lines += _extras(model)
    lines += ["", "conventions", *(f"  {line}" for line in CONVENTIONS)]
    if model.report:
        lines += ["", "warnings", *(f"  {line}" for line in model.report)]
    return "\n".join(lines)


def _extras(model: Model) -> list[str]:
    """Return lines about frames, loops, couplings and motors, if there are any."""
    lines: list[str] = []
    if model.frames:
        placed = ", ".join(f"{frame.name} on {_name(model, frame.body)}" for frame in model.frames)
        lines += ["", f"frames: {placed}"]
    if model.loops:
        lines += ["", "loops (q, v, tau are the spanning tree's)"]
        for loop in model.loops:
            ends = f"{_name(model, loop.predecessor)} – {_name(model, loop.successor)}"
            lines.append(f"  {loop.name}: {loop.joint.kind} joint, {ends}, {6 - loop.joint.nv} constraints")
    if model.constraints:
        lines += ["", "constraints (functions of the user's that stay zero)"]
        for item in model.constraints:
            timed = ", with time" if item.time_dependent else ""
            lines.append(f"  {item.name}: of {item.kind}, {item.size} residuals{timed}")
    if model.closure is not None:
        lines += ["", f"loop closure: q is a function of {', '.join(model.closure.independent)}"]
    if model.couplings:
        lines += ["", "couplings (q, v, tau hold the independent joints only)"]
        for coupling in model.couplings:
            terms = " + ".join(f"{k:g}·{joint}" for joint, k in coupling.coefficients)
            offset = f" + {coupling.offset:g}" if coupling.offset else ""
            lines.append(f"  {coupling.name}: {terms}{offset} = 0, {coupling.dependent} follows")
    lines += _contact(model)
    idle = [joint.name for joint in model.joints if joint.body.nv and joint.name not in model.actuated]
    if idle:
        lines += ["", f"joints without a motor: {', '.join(idle)}"]
    return lines


def _contact(model: Model) -> list[str]:
    """Return lines about the world's shapes, contact exclusions and contact pairs."""
    shapes = [f"{shape.name} ({shape.kind})" if shape.name else shape.kind for shape in model.world_shapes]
    lines: list[str] = []
    for title, items in (
        ("shapes of the world", shapes),
        ("bodies that never touch", [f"{a} – {b}" for a, b in model.contact_exclusions]),
        ("shapes that may always touch", [f"{pair.first} – {pair.second}" for pair in model.contact_pairs]),
    ):
        if items:
            more = f", … ({len(items)} in all)" if len(items) > MAX_LISTED else ""
            lines += ["", f"{title}: {', '.join(items[:MAX_LISTED])}{more}"]
    return lines


def _base(model: Model) -> str:
    roots = [body for body in model.bodies if body.parent < 0]
    kinds = ", ".join(
        f"{body.name} ({'floating' if body.joint.kind == 'free' else body.joint.kind})" for body in roots
    )
    return f"world is fixed; standing on it: {kinds}"


def _name(model: Model, body: int) -> str:
    return "world" if body < 0 else model.bodies[body].name


def _preorder(model: Model) -> list[int]:
    """Return the body indices in depth-first order, as the tree is drawn."""
    below: list[list[int]] = [[] for _ in range(len(model.bodies) + 1)]
    for i, parent in enumerate(model.parents):
        below[parent].append(i)
    order, stack = [], list(reversed(below[-1]))
    while stack:
        i = stack.pop()
        order.append(i)
        stack.extend(reversed(below[i]))
    return order


def _drawings(model: Model) -> list[str]:
    """Return the branch that leads to each body, in box characters."""
    last = {parent: i for i, parent in enumerate(model.parents)}  # the last child of every body
    stems = {-1: ""}
    depth = {-1: 0}
    drawings = []
    for i, parent in enumerate(model.parents):
        depth[i] = depth[parent] + 1
        is_last = last[parent] == i
        if depth[i] > MAX_DRAWN_DEPTH:
            stems[i] = stems[parent]
            drawings.append(f"{stems[parent]}… (depth {depth[i]}) ")
            continue
        drawings.append(stems[parent] + ("└─ " if is_last else "├─ "))
        stems[i] = stems[parent] + ("   " if is_last else "│  ")
    return drawings


def _range(places: slice, body: Body) -> str:
    if body.dependence is not None:
        return "follows"
    if places.start == places.stop:
        return "–"
    return str(places.start) if places.stop == places.start + 1 else f"{places.start}:{places.stop}"


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) and math.isfinite(value) else str(value)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]

    def line(row: Sequence[str]) -> str:
        texts = [text.rjust(w) if k >= 3 else text.ljust(w) for k, (text, w) in enumerate(zip(row, widths))]
        return "  ".join(texts).rstrip()

    return [line(header), "  ".join("─" * w for w in widths), *(line(row) for row in rows)]
