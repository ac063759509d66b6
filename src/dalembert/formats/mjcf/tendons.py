"""Tendons of an MJCF file as springs, dampers and limits along paths.

A fixed tendon is a path over joints, a spatial one leads through sites; behind a pulley of the divisor d its
lines count 1 / d. Tendons that exert no force, have no limits and drive nothing are left out.
"""

from __future__ import annotations

from typing import Any

from dalembert.formats.mjcf.bodies import Compiled, floats, range_ends, unique_name
from dalembert.model import ModelBuilder


def fixed_tendon(compiled: Compiled, t: int) -> dict[str, float] | None:
    """Return the coefficients of a fixed tendon by joint; None for a spatial one."""
    m, kinds = compiled.m, compiled.mujoco.mjtWrap
    places = range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t])
    if any(int(m.wrap_type[w]) != int(kinds.mjWRAP_JOINT) for w in places):
        return None
    terms: dict[str, float] = {}
    for w in places:
        joint = compiled.joints[m.wrap_objid[w]]
        terms[joint] = terms.get(joint, 0.0) + float(m.wrap_prm[w])
    return terms


def add_tendons(builder: ModelBuilder, compiled: Compiled) -> dict[int, str]:
    """Add the tendons that pull, have limits or carry an actuator; return the names of their springs."""
    m, found = compiled.m, dict[int, str]()
    Trn = compiled.mujoco.mjtTrn
    carrying = {
        int(m.actuator_trnid[i][0])
        for i in range(m.nactuator)
        if int(m.actuator_trntype[i]) == int(Trn.mjTRN_TENDON)
    }
    taken = {*compiled.joints, *(compiled.name("EQUALITY", e) for e in range(m.neq))}
    for t in range(m.ntendon):
        name, terms = compiled.name("TENDON", t), fixed_tendon(compiled, t)
        given = _resistance(compiled, t)
        limited = bool(m.tendon_limited[t]) and not compiled.is_disabled("LIMIT")
        if limited:
            given["limits"] = low, high = range_ends(m.tendon_range[t])
        used = t in carrying and terms is None
        path: dict[str, Any] = {} if terms is None else {"joints": terms}
        if terms is None and _wraps(compiled, t):
            if set(given) - {"limits"}:
                message = f'tendon "{name}" is wound around a geom and pulls, which is not supported'
                raise compiled.error("spatial", name, message)
            what = f", and its limits, {low:g} to {high:g} m" if limited else ""
            compiled.report.note(f'ignored: spatial tendon "{name}", which is wound around a geom{what}')
        elif given or used:
            if terms is None:
                path = _path(compiled, t)
            own = unique_name(name, taken)
            if own != name:
                compiled.report.note(f'tendon "{name}" is called "{own}": the name is taken')
            rest = floats(m.tendon_lengthspring[t])
            builder.add_spring(own, **path, **given, rest_length=(rest[0], rest[1]))
            found[t] = own
        else:
            kind = "spatial" if terms is None else "fixed"
            compiled.report.note(f'ignored: {kind} tendon "{name}", which exerts no force by itself')
    return found


def _resistance(compiled: Compiled, t: int) -> dict[str, Any]:
    """Return the stiffness and damping of a tendon, without zeros; reject forces that a spring has not."""
    m = compiled.m
    springs, dampers, friction = (
        not compiled.is_disabled(flag) for flag in ("SPRING", "DAMPER", "FRICTIONLOSS")
    )
    for what, value in (
        ("a nonlinear spring", springs and any(m.tendon_stiffnesspoly[t])),
        ("nonlinear damping", dampers and any(m.tendon_dampingpoly[t])),
        ("armature", m.tendon_armature[t]),
        ("dry friction", friction and m.tendon_frictionloss[t]),
    ):
        if value:
            name = compiled.name("TENDON", t)
            message = f'tendon "{name}" has {what}; springs, dampers and limits of tendons are supported'
            raise compiled.error(("fixed", "spatial"), name, message)
    values = {
        "stiffness": float(springs * m.tendon_stiffness[t]),
        "damping": float(dampers * m.tendon_damping[t]),
    }
    return {part: value for part, value in values.items() if value}


def _wraps(compiled: Compiled, t: int) -> bool:
    """Return whether a spatial tendon is wound around a sphere or a cylinder."""
    m, kinds = compiled.m, compiled.mujoco.mjtWrap
    places = range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t])
    return any(int(m.wrap_type[w]) in (int(kinds.mjWRAP_SPHERE), int(kinds.mjWRAP_CYLINDER)) for w in places)


def _path(compiled: Compiled, t: int) -> dict[str, Any]:
    """Return the points of a spatial tendon, and the weights of its lines where it has pulleys."""
    m, kinds = compiled.m, compiled.mujoco.mjtWrap
    points: list[tuple[str, list[float]]] = []
    weights: list[float] = []
    weight, broken = 1.0, True
    for w in range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t]):
        if int(m.wrap_type[w]) == int(kinds.mjWRAP_PULLEY):
            weight, broken = 1.0 / float(m.wrap_prm[w]), True
            continue
        body, at = compiled.placement("site", int(m.wrap_objid[w]))
        if points:
            weights.append(0.0 if broken else weight)
        points.append((body, floats(at.p)))
        broken = False
    return {"points": points} | ({} if set(weights) == {1.0} else {"weights": weights})
