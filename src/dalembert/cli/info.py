"""`dalembert info`: show the content of a model or motion file."""

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import dalembert as da
from dalembert import algorithms
from dalembert.cli.content import Content, content, finite, say, say_json, unreadable
from dalembert.cli.timing import table
from dalembert.errors import DalembertError
from dalembert.model import Body

__all__ = ["facts", "run"]

MAX_LIMIT_ROWS = 400
"""Joints beyond these are counted, not listed."""


def run(options: argparse.Namespace) -> int:
    """Print what the file holds; 2 where it cannot be read."""
    try:
        found = content(options.file, options)
    except DalembertError as error:
        return unreadable(options.file, error, as_json=options.json)
    if options.json:
        say_json(facts(found))
        return 0
    model = found.model
    say(f"{found.path}: {found.format}\n")
    say(model.summary())
    say()
    centre = center_of_mass(model)
    if centre is not None:
        say("centre of mass at the neutral pose: ({}) m".format(", ".join(f"{x:.4g}" for x in centre)))
    if model.loop_names:
        say(_mobility_text(model))
    say(_limits_text(model))
    if found.clip is not None:
        say()
        say(_clip_text(found.clip))
    if not model.report:
        say("\nnothing in the file was ignored")
    return 0


def center_of_mass(model: da.Model) -> list[float] | None:
    """Return the centre of mass in the world [m] at the neutral pose; None for a model without mass."""
    if not float(model.total_mass) > 0.0:
        return None
    time = 0.0 if model.time_dependent else None
    return [float(x) for x in algorithms.center_of_mass(model, model.neutral().tolist(), time=time)]


def facts(found: Content) -> dict[str, Any]:
    """Return all facts of the text in machine-readable form; limits that do not exist are null."""
    model = found.model
    return {
        "file": found.path,
        "readable": True,
        "format": found.format,
        "name": model.name,
        "nq": model.nq,
        "nv": model.nv,
        "gravity": [float(g) for g in model.gravity],
        "total_mass": finite(model.total_mass),
        "center_of_mass": center_of_mass(model),
        "bodies": [_body(model, body) for body in model.bodies],
        "frames": {frame.name: _name(model, frame.body) for frame in model.frames},
        "loops": [
            {
                "name": loop.name,
                "type": loop.joint.kind,
                "predecessor": _name(model, loop.predecessor),
                "successor": _name(model, loop.successor),
            }
            for loop in model.loops
        ],
        "couplings": [
            {
                "name": coupling.name,
                "coefficients": dict(coupling.coefficients),
                "offset": coupling.offset,
                "dependent": coupling.dependent,
            }
            for coupling in model.couplings
        ],
        "constraints": [
            {"name": item.name, "kind": item.kind, "residuals": item.size} for item in model.constraints
        ],
        "world_shapes": [shape.kind for shape in model.world_shapes],
        "contact_exclusions": [list(pair) for pair in model.contact_exclusions],
        "contact_pairs": [[pair.first, pair.second] for pair in model.contact_pairs],
        "mobility": _mobility(model),
        "actuated": list(model.actuated),
        "report": list(model.report),
        "motion": None if found.clip is None else _clip(found.clip),
    }


def _mobility(model: da.Model) -> dict[str, Any] | None:
    """Return n, n_c, r and the mobility at the neutral pose; None without constraints, or where loops are
    open.
    """
    if not model.loop_names:
        return None
    try:
        found = da.mobility(model, time=0.0 if model.time_dependent else None)
    except DalembertError:
        return None
    return {"n": found.n, "constraints": found.n_c, "rank": found.rank, "mobility": found.mobility}


def _mobility_text(model: da.Model) -> str:
    try:
        return f"at the neutral pose: {da.mobility(model, time=0.0 if model.time_dependent else None)}"
    except DalembertError as error:
        return str(error)


def _body(model: da.Model, body: Body) -> dict[str, Any]:
    return {
        "name": body.name,
        "parent": _name(model, body.parent),
        "joint": body.joint_name,
        "type": body.joint.kind,
        "dof": body.nv,
        "q": [body.q_slice.start, body.q_slice.stop],
        "v": [body.v_slice.start, body.v_slice.stop],
        "mass": finite(body.inertia.mass),
        "limits": {
            name: [finite(x) for x in _each(body, name)] for name in ("lower", "upper", "velocity", "effort")
        },
        "shapes": [shape.kind for shape in body.shapes],
    }


def _name(model: da.Model, body: int) -> str:
    return "world" if body < 0 else model.bodies[body].name


def _each(body: Body, name: str) -> tuple[float, ...]:
    value: Any = getattr(body.limits, name)
    return value if isinstance(value, tuple) else (value,)


def _limits_text(model: da.Model) -> str:
    limited = [
        body
        for body in model.bodies
        if any(
            map(
                math.isfinite,
                (x for name in ("lower", "upper", "velocity", "effort") for x in _each(body, name)),
            )
        )
    ]
    if not limited:
        return "no joint has limits"
    rows = [
        [body.joint_name, *(_numbers(_each(body, name)) for name in ("lower", "upper", "velocity", "effort"))]
        for body in limited[:MAX_LIMIT_ROWS]
    ]
    lines = ["", table(["limits of joint", "lower", "upper", "velocity", "effort"], rows)]
    if len(limited) > MAX_LIMIT_ROWS:
        lines.append(f"… and {len(limited) - MAX_LIMIT_ROWS} joints more")
    free = sum(1 for body in model.bodies if body.nv) - sum(1 for body in limited if body.nv)
    return "\n".join([*lines, _without_limits(free)])


def _without_limits(joints: int) -> str:
    if not joints:
        return "every movable joint has limits"
    return "1 movable joint has no limits" if joints == 1 else f"{joints} movable joints have no limits"


def _numbers(values: Sequence[float]) -> str:
    texts = [f"{x:.4g}" if math.isfinite(x) else "–" for x in values]
    return texts[0] if len(set(texts)) == 1 else " ".join(texts)


def _clip(clip: Any) -> dict[str, Any]:
    time = np.asarray(clip.time, dtype=float)
    return {
        "frames": len(time),
        "duration": float(time[-1] - time[0]) if len(time) else 0.0,
        "frame_time": float(time[1] - time[0]) if len(time) > 1 else None,
        "largest_speed": finite(float(np.abs(clip.v).max())) if np.size(clip.v) else None,
    }


def _clip_text(clip: Any) -> str:
    values = _clip(clip)
    pace = f", one each {values['frame_time']:.6g} s" if values["frame_time"] else ""
    return f"motion: {values['frames']} frames{pace}, {values['duration']:.4g} s in all"
