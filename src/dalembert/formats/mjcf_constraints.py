"""Equality constraints and tendons of a compiled MuJoCo model as loop joints and couplings.

MuJoCo's constraints are soft; here they hold exactly. `connect` is a spherical loop joint, `weld` a fixed
one,

    x_1 T(p_1) = x_2 T(p_2)   (connect: positions only),   R_1 R_rel = R_2   (weld)                   (1)

and a `joint` or fixed-`tendon` equality of first order couples coordinates:

    y - y_0 = a_0 + a_1 (x - x_0),   a fixed tendon being the sum of coefficient * q.                  (2)
"""

from __future__ import annotations

from typing import Any

from dalembert.formats.mjcf_compiled import Compiled, Home, pose, shift
from dalembert.model import ModelBuilder
from dalembert.model.joints import Fixed, Joint, Spherical
from dalembert.spatial import Transform, Vec3

__all__ = ["add_equalities", "check_tendons"]

CONNECT, WELD, JOINT, TENDON = range(4)

TAGS = {CONNECT: "connect", WELD: "weld", JOINT: "joint", TENDON: "tendon"}

MAX_ZERO_COEFFICIENT = 1e-12
"""Coefficients of second and higher order up to this size count as zero: the coupling is linear."""


def add_equalities(builder: ModelBuilder, compiled: Compiled, homes: list[Home]) -> dict[str, float]:
    """Add loops and couplings; returns the positions of joints that an equality holds still."""
    m = compiled.m
    held: dict[str, float] = {}
    if m.neq and (compiled.is_disabled("EQUALITY") or compiled.is_disabled("CONSTRAINT")):
        compiled.report.note(f"ignored: {m.neq} equality constraints, which the file disables")
        return held
    names: set[str] = set(compiled.joints)
    for e in range(m.neq):
        kind, name = int(m.eq_type[e]), compiled.name("EQUALITY", e)
        if not m.eq_active0[e]:
            compiled.report.note(f'ignored: equality "{name}" is not active')
            continue
        if kind not in TAGS:
            raise compiled.error(
                ("flex", "flexvert", "flexstrain", "distance"),
                name,
                f'equality "{name}" is of a kind that is not supported; connect, weld, joint and tendon are',
            )
        while name in names:
            name += ":equality"
        names.add(name)
        if kind in (CONNECT, WELD):
            _add_loop(builder, compiled, homes, e, name)
        else:
            _add_coupling(builder, compiled, e, name, held)
    if m.neq:
        compiled.report.note("equality constraints hold exactly here; solref and solimp are not used")
    return held


def _add_loop(builder: ModelBuilder, compiled: Compiled, homes: list[Home], e: int, name: str) -> None:
    """Add a loop by Eq. (1)."""
    m = compiled.m
    data = [float(x) for x in m.eq_data[e]]
    weld = int(m.eq_type[e]) == WELD
    ids = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
    if int(m.eq_objtype[e]) == int(compiled.mujoco.mjtObj.mjOBJ_SITE):
        ends = [(homes[m.site_bodyid[s]], pose(m.site_pos[s], m.site_quat[s])) for s in ids]
    elif weld:
        ends = [
            (homes[ids[0]], pose(data[3:6], data[6:10])),
            (homes[ids[1]], shift(Vec3(*data[0:3]))),
        ]
    else:
        ends = [(homes[ids[0]], shift(Vec3(*data[0:3]))), (homes[ids[1]], shift(Vec3(*data[3:6])))]
    (first, X_1), (second, X_2) = ends
    if first.body == second.body:
        compiled.report.note(f'ignored: equality "{name}" joins places on one body')
        return
    # A weld whose torques are scaled by zero holds the positions only.
    joint: Joint = Fixed() if weld and data[10] != 0.0 else Spherical()
    at: list[Transform] = [first.at @ X_1, second.at @ X_2]
    builder.add_loop(name, first.body, second.body, joint, at[0], at[1])


def _add_coupling(
    builder: ModelBuilder, compiled: Compiled, e: int, name: str, held: dict[str, float]
) -> None:
    """Add a coupling by Eq. (2), as a sum of coefficient * q + offset = 0."""
    m = compiled.m
    tag = TAGS[int(m.eq_type[e])]
    a = [float(x) for x in m.eq_data[e][:5]]
    if any(abs(x) > MAX_ZERO_COEFFICIENT for x in a[2:]) and m.eq_obj2id[e] >= 0:
        raise compiled.error(
            tag, name, f'equality "{name}" couples by a polynomial {a}; only a0 + a1 x is supported'
        )
    y, y0 = _terms(compiled, tag, int(m.eq_obj1id[e]), name)
    coefficients, offset = dict(y), -y0 - a[0]
    if m.eq_obj2id[e] >= 0 and a[1] != 0.0:
        x, x0 = _terms(compiled, tag, int(m.eq_obj2id[e]), name)
        for joint, k in x.items():
            coefficients[joint] = coefficients.get(joint, 0.0) - a[1] * k
        offset += a[1] * x0
    kept = {joint: k for joint, k in coefficients.items() if k != 0.0}
    if len(kept) == 1:
        joint, k = next(iter(kept.items()))
        held[joint] = -offset / k
        compiled.report.note(f'equality "{name}" holds joint "{joint}" at {held[joint]:.6g}: it is locked')
    elif kept:
        builder.add_coupling(name, kept, offset=offset, dependent=next(iter(kept)))


def _terms(compiled: Compiled, tag: str, index: int, equality: str) -> tuple[dict[str, float], float]:
    """Return the joints' coefficients in a joint's position or a tendon's length, and its value at qpos0."""
    m = compiled.m
    if tag == "joint":
        return {compiled.joints[index]: 1.0}, float(m.qpos0[m.jnt_qposadr[index]])
    name = compiled.name("TENDON", index)
    terms = fixed_tendon(compiled, index)
    if terms is None:
        raise compiled.error(
            "tendon",
            equality,
            f'equality "{equality}" holds the spatial tendon "{name}"; only fixed ones are kept',
        )
    return terms, float(m.tendon_length0[index])


def fixed_tendon(compiled: Compiled, t: int) -> dict[str, float] | None:
    """Return the coefficients of a fixed tendon by joint; None for a spatial one."""
    m = compiled.m
    places = range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t])
    if any(int(m.wrap_type[w]) != int(compiled.mujoco.mjtWrap.mjWRAP_JOINT) for w in places):
        return None
    terms: dict[str, float] = {}
    for w in places:
        joint = compiled.joints[m.wrap_objid[w]]
        terms[joint] = terms.get(joint, 0.0) + float(m.wrap_prm[w])
    return terms


def check_tendons(compiled: Compiled) -> None:
    """Refuse tendons that push, pull or weigh; those that only measure or carry an actuator are listed."""
    m = compiled.m
    for t in range(m.ntendon):
        name = compiled.name("TENDON", t)
        for what, value in _forces(compiled, t):
            if value:
                raise compiled.error(
                    ("fixed", "spatial"),
                    name,
                    f'tendon "{name}" has {what}; tendons with forces are not supported',
                )
        if m.tendon_limited[t] and not compiled.is_disabled("LIMIT"):
            low, high = (float(x) for x in m.tendon_range[t])
            compiled.report.note(f'ignored: the limits of tendon "{name}", {low:g} to {high:g} m')
        kind = "fixed" if fixed_tendon(compiled, t) is not None else "spatial"
        compiled.report.note(f'ignored: {kind} tendon "{name}", which exerts no force by itself')


def _forces(compiled: Compiled, t: int) -> list[tuple[str, Any]]:
    m = compiled.m
    return [
        (
            "stiffness",
            not compiled.is_disabled("SPRING") and (m.tendon_stiffness[t] or any(m.tendon_stiffnesspoly[t])),
        ),
        (
            "damping",
            not compiled.is_disabled("DAMPER") and (m.tendon_damping[t] or any(m.tendon_dampingpoly[t])),
        ),
        ("armature", m.tendon_armature[t]),
        ("dry friction", not compiled.is_disabled("FRICTIONLOSS") and m.tendon_frictionloss[t]),
    ]
