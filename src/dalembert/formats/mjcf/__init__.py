"""MJCF, the model files of MuJoCo: compiled by MuJoCo itself, then copied into a model of ours.

MuJoCo opens no file: it gets a text and the bytes of meshes that were read and examined here (`mjcf.files`).
Our q is MuJoCo's qpos where no equality couples joints and the root is left as the file says; v differs in
free joints (`convert_state(…, source="mujoco", target="dalembert")`). Nothing that changes the dynamics is
dropped: it is kept or rejected. What cannot change them is listed in `model.report`.

MuJoCo's equality constraints are soft; here they hold exactly. `connect` is a spherical loop joint, `weld` a
fixed one,

    x_1 T(p_1) = x_2 T(p_2)   (connect: positions only),   R_1 R_rel = R_2   (weld)                   (1)

and a `joint` or fixed-`tendon` equality of first order couples coordinates:

    y - y_0 = a_0 + a_1 (x - x_0),   a fixed tendon being the sum of coefficient * q.                  (2)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, DalembertError, FileError, InertiaError, MissingExtraError
from dalembert.formats.mjcf.bodies import (
    SLIDE,
    WORLD,
    Compiled,
    Plan,
    add_bodies,
    add_contact,
    add_fluid,
    floats,
    plan_bodies,
    pose,
    range_ends,
    read_shapes,
    shift,
    unique_name,
)
from dalembert.formats.mjcf.files import Source, read_source
from dalembert.formats.resources import Report, check_options
from dalembert.model import Model, ModelBuilder
from dalembert.model.conventions import convert_state
from dalembert.model.joints import Fixed, Spherical
from dalembert.model.values import rebuilt
from dalembert.spatial import Vec3

__all__ = ["Keyframe", "MjcfFile", "load_mjcf", "read_mjcf"]

Array = npt.NDArray[np.floating[Any]]

LISTED: Final = {
    "nsensor": "sensors",
    "ncam": "cameras",
    "nlight": "lights",
    "ntex": "textures",
    "nmat": "materials",
    "nskin": "skins",
    "nnumeric": "custom numbers",
    "ntext": "custom texts",
    "ntuple": "custom tuples",
}
"""What a model has no place for and what moves nothing by itself, by MuJoCo's count of it."""

EQUALITY_TAGS: Final = ("connect", "weld", "joint", "tendon")
"""The supported kinds of equality constraints, by MuJoCo's numbers."""
MAX_ZERO_COEFFICIENT: Final = 1e-12
"""Coefficients of second and higher order up to this size count as zero: the coupling is linear."""

INITIAL_POSE: Final = "qpos0"
"""The name of the pose in which a file places its bodies: MuJoCo's for its configuration."""

TRANSMISSIONS: Final = {
    0: ("joint", "JOINT"),
    1: ("joint, in parent axes,", "JOINT"),
    2: ("slider-crank", "SITE"),
    3: ("tendon", "TENDON"),
    4: ("site", "SITE"),
    5: ("body", "BODY"),
}


@final
@dataclass(frozen=True, eq=False)
class Keyframe:
    """A state of the file, q `(nq,)` and v `(nv,)`, in the model's own convention."""

    name: str
    time: float
    q: Array
    v: Array


@final
@dataclass(frozen=True, eq=False)
class MjcfFile:
    """The content of an MJCF file: the model, and its keyframes as states; `start` is the state in which the
    file places its bodies (`model.neutral()` has free bodies at the origin of the world).
    """

    model: Model
    keyframes: tuple[Keyframe, ...]
    start: Keyframe


def load_mjcf(path: str | os.PathLike[str], **options: Any) -> Model:
    """Load the model of an MJCF file; options as in `read_mjcf`."""
    return read_mjcf(path, **options).model


def read_mjcf(
    path: str | os.PathLike[str],
    *,
    root: str | None = None,
    inertia: str = "as_given",
    roots: Sequence[str | os.PathLike[str]] = (),
    trusted: bool = False,
) -> MjcfFile:
    """Read the model of an MJCF file with the keyframes as states.

    `root`: None as the file says; "fixed" takes free joints away, "floating" sets the one body on the world
    free. `inertia`: "as_given", "strict", or "repair", which lets MuJoCo average moments that no body has.
    Files that the model names lie below its own folder or one of `roots`, unless it is `trusted`.
    """
    check_options(root, inertia)
    try:
        import mujoco
    except ImportError as cause:
        raise MissingExtraError(
            "MJCF files are compiled by MuJoCo, which is not installed; "
            "install it with: pip install 'dalembert[mjcf]'"
        ) from cause
    file = Path(path)
    balance = inertia == "repair"
    source = read_source(file, [Path(item) for item in roots], trusted=trusted, balance=balance)
    report = Report()
    if source.skins:
        report.note(f"ignored: {source.skins} skins")
    compiled = Compiled(mujoco, _compile(mujoco, source, report), source, report)
    try:
        return _convert(compiled, root, inertia)
    except (FileError, InertiaError):
        raise
    except DalembertError as error:
        raise FileError(f"{file}: {error}") from error


def _compile(mujoco: Any, source: Source, report: Report) -> Any:
    """Compile the model with MuJoCo; its errors are raised as ours, its warnings are lines of the report."""

    def warn(message: object) -> None:
        report.warn(source.in_words_of_the_file(str(message)))

    others = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(warn)
    try:
        return mujoco.MjModel.from_xml_string(source.text.xml, source.assets)
    except (ValueError, RuntimeError, TypeError, mujoco.FatalError) as error:
        hint = '; load it with inertia="repair"' if "balanceinertia" in str(error) else ""
        text = source.in_words_of_the_file(" ".join(str(error).split()))
        raise FileError(f"{source.path}: MuJoCo does not accept the file: {text}{hint}") from error
    finally:
        mujoco.set_mju_user_warning(others)


def _convert(compiled: Compiled, root: str | None, inertia: str) -> MjcfFile:
    m, report = compiled.m, compiled.report
    _reject_other_physics(compiled)
    _reflect_rotors(compiled)
    plan = plan_bodies(compiled, root)
    read_shapes(compiled)
    name = bytes(m.names).split(b"\0", 1)[0].decode("utf-8", "replace").strip()
    builder = ModelBuilder(gravity=_gravity(compiled), name=name or "model")
    add_bodies(builder, compiled, plan)
    add_contact(builder, compiled, plan)
    taken = {*compiled.bodies, *(name for name, _, _ in plan.frames)}
    for s in range(m.nsite):
        site = compiled.name("SITE", s)
        own = unique_name(site, taken)
        if own != site:
            report.note(f'site "{site}" is called "{own}": the name is taken')
        builder.add_frame(own, *compiled.placement("site", s))
    held = _add_equalities(builder, compiled)
    tendons = add_tendons(builder, compiled)
    _add_actuators(builder, compiled, tendons)
    if m.nv and (m.opt.density or m.opt.viscosity):
        add_fluid(builder, compiled)
    _add_poses(builder, compiled, plan)
    for count, what in LISTED.items():
        if getattr(m, count):
            report.note(f"ignored: {getattr(m, count)} {what}")
    for line in report.lines():
        builder.warn(line)
    model = builder.build(inertia="strict" if inertia == "strict" else "as_given")
    if held:
        model = _lock_joints(model, held)
    keyframes = tuple(
        _keyframe(compiled, model, compiled.name("KEY", k), m.key_time[k], m.key_qpos[k], m.key_qvel[k])
        for k in range(m.nkey)
    )
    start = _keyframe(compiled, model, "", 0.0, m.qpos0, np.zeros(m.nv))
    return MjcfFile(model, keyframes, start)


def _reject_other_physics(compiled: Compiled) -> None:
    """Reject flexible bodies and plugins; report mocap bodies."""
    m, problem = compiled.m, ""
    if m.nbody == 1 and not m.ngeom:
        problem = "there is no body in the file; it may be a part of another one"
    elif m.nflex:
        problem = "flexible bodies (flex) are not supported"
    elif m.nplugin:
        problem = "plugins are not supported"
    if problem:
        raise FileError(f"{compiled.source.path}: {problem}")
    if m.nmocap:
        compiled.report.note(f"{m.nmocap} mocap bodies are fixed to the world where the file puts them")


def _gravity(compiled: Compiled) -> tuple[float, ...]:
    """Return gravity as it acts on the moving bodies.

    MuJoCo's gravcomp lifts a body by that fraction of its weight. The same fraction on all moving bodies is a
    weaker gravity; different fractions cannot be had with one gravity for all.
    """
    m = compiled.m
    if compiled.is_disabled("GRAVITY") or not any(m.opt.gravity):
        return 0.0, 0.0, 0.0
    moving = [b for b in range(1, m.nbody) if compiled.homes[b].body != WORLD and m.body_mass[b] > 0.0]
    fractions = {float(m.body_gravcomp[b]) for b in moving}
    if len(fractions) > 1:
        lifted = compiled.bodies[next(b for b in moving if m.body_gravcomp[b])]
        raise compiled.error(
            "body",
            lifted,
            f'body "{lifted}" has gravcomp, which other moving bodies have not in the same measure; a model '
            "has one gravity for all: set gravcomp to 0, or to the same number on all bodies",
        )
    lift = fractions.pop() if fractions else 0.0
    if lift:
        compiled.report.note(f"gravity is reduced by {lift:g} of itself, the gravcomp of every moving body")
    return tuple(x * (1.0 - lift) for x in floats(m.opt.gravity))


# Equality constraints and tendons


def _add_equalities(builder: ModelBuilder, compiled: Compiled) -> dict[str, float]:
    """Add loops and couplings; return the positions of joints that an equality holds still."""
    m, report = compiled.m, compiled.report
    held: dict[str, float] = {}
    if m.neq and (compiled.is_disabled("EQUALITY") or compiled.is_disabled("CONSTRAINT")):
        report.note(f"ignored: {m.neq} equality constraints, which the file disables")
        return held
    names: set[str] = set(compiled.joints)
    for e in range(m.neq):
        kind, name = int(m.eq_type[e]), compiled.name("EQUALITY", e)
        if not m.eq_active0[e]:
            report.note(f'ignored: equality "{name}" is not active')
            continue
        if kind >= len(EQUALITY_TAGS):
            raise compiled.error(
                ("flex", "flexvert", "flexstrain", "distance"),
                name,
                f'equality "{name}" is of a kind that is not supported; connect, weld, joint and tendon are',
            )
        while name in names:
            name += ":equality"
        names.add(name)
        if EQUALITY_TAGS[kind] in ("connect", "weld"):
            _add_loop(builder, compiled, e, name)
        else:
            held |= _add_coupling(builder, compiled, e, name)
    if m.neq:
        report.note("equality constraints hold exactly here; solref and solimp are not used")
    return held


def _add_loop(builder: ModelBuilder, compiled: Compiled, e: int, name: str) -> None:
    """Add a loop by Eq. (1)."""
    m, homes = compiled.m, compiled.homes
    data = floats(m.eq_data[e])
    weld = EQUALITY_TAGS[int(m.eq_type[e])] == "weld"
    ids = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
    if int(m.eq_objtype[e]) == int(compiled.mujoco.mjtObj.mjOBJ_SITE):
        (first, X_1), (second, X_2) = (compiled.placement("site", s) for s in ids)
    else:
        at = shift(Vec3(*data[0:3])), shift(Vec3(*data[3:6]))
        if weld:
            at = pose(data[3:6], data[6:10]), at[0]
        (first, X_1), (second, X_2) = ((homes[b].body, homes[b].at @ X) for b, X in zip(ids, at))
    if first == second:
        compiled.report.note(f'ignored: equality "{name}" joins places on one body')
        return
    # A weld whose torques are scaled by zero holds the positions only.
    joint = Fixed() if weld and data[10] != 0.0 else Spherical()
    builder.add_loop(name, first, second, joint, X_1, X_2)


def _add_coupling(builder: ModelBuilder, compiled: Compiled, e: int, name: str) -> dict[str, float]:
    """Add a coupling by Eq. (2), as a sum of coefficient * q + offset = 0; return the position of a joint
    that it holds still.
    """
    m = compiled.m
    tag = EQUALITY_TAGS[int(m.eq_type[e])]
    a = floats(m.eq_data[e][:5])
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
        ((joint, k),) = kept.items()
        position = -offset / k
        compiled.report.note(f'equality "{name}" holds joint "{joint}" at {position:.6g}: it is locked')
        return {joint: position}
    if kept:
        builder.add_coupling(name, kept, offset=offset, dependent=next(iter(kept)))
    return {}


def _terms(compiled: Compiled, tag: str, index: int, equality: str) -> tuple[dict[str, float], float]:
    """Return the joints' coefficients in a joint's position or a tendon's length, and its value at qpos0."""
    m = compiled.m
    if tag == "joint":
        return {compiled.joints[index]: 1.0}, float(m.qpos0[m.jnt_qposadr[index]])
    terms = fixed_tendon(compiled, index)
    if terms is None:
        tendon = compiled.name("TENDON", index)
        what = f'equality "{equality}" holds the spatial tendon "{tendon}"; only fixed ones are kept'
        raise compiled.error("tendon", equality, what)
    return terms, float(m.tendon_length0[index])


def _lock_joints(model: Model, held: dict[str, float]) -> Model:
    """Lock the joints that an equality holds at a constant."""
    q = model.neutral()
    for joint, position in held.items():
        view = model.joint(joint)
        if not view.nq:
            raise ArgumentError(
                f'joint "{joint}" is both held still and coupled to others; keep one equality'
            )
        q[view.q_slice] = position
    return rebuilt(model.lock(held, q.tolist()), report=model.report)


# Actuators, poses and keyframes


def _reflect_rotors(compiled: Compiled) -> None:
    """Add the armature and damping of actuators, by gear ratio squared, to the joints they turn."""
    m = compiled.m
    for i in range(m.nactuator):
        armature, damping = float(m.actuator_armature[i]), float(m.actuator_damping[i])
        joint = int(m.actuator_trnid[i][0])
        scalar = int(m.actuator_trntype[i]) in (0, 1) and int(m.jnt_type[joint]) >= 2
        problem = ""
        if any(m.actuator_dampingpoly[i]):
            problem = "has nonlinear damping"
        elif (armature or damping) and not scalar:
            problem = "has armature or damping of its own and drives no hinge or slide; "
            problem += "give these numbers to the joints"
        if problem:
            name = compiled.name("ACTUATOR", i)
            tags = ("general", "motor", "position", "velocity")
            raise compiled.error(tags, name, f'actuator "{name}" {problem}')
        if scalar:
            gear, dof = float(m.actuator_gear[i][0]), m.jnt_dofadr[joint]
            m.dof_armature[dof] += gear * gear * armature
            m.dof_damping[dof] += gear * gear * damping


def _add_actuators(builder: ModelBuilder, compiled: Compiled, tendons: Mapping[int, str]) -> None:
    """Add the actuators whose force depends on control, length and rate only; report the others, which are
    left out; a muscle, which pulls by itself, is rejected.
    """
    m, names = compiled.m, [compiled.name("ACTUATOR", i) for i in range(compiled.m.nactuator)]
    driven: dict[str, None] = {}
    for i, name in enumerate(names):
        joints = _driven_joints(compiled, i, tendons)
        driven |= dict.fromkeys(joint for joint in joints or () if joint in compiled.places)
        reason = _reason_to_omit(compiled, i, joints)
        if reason or joints is None:
            report = f'ignored: actuator "{name}" {reason}'
            compiled.report.note(report)
            continue
        gain, bias = floats(m.actuator_gainprm[i]), floats(m.actuator_biasprm[i])
        affine = int(m.actuator_biastype[i]) == int(compiled.mujoco.mjtBias.mjBIAS_AFFINE)
        limited = m.actuator_ctrllimited[i] and not compiled.is_disabled("CLAMPCTRL")
        low, high = floats(m.actuator_ctrlrange[i]), floats(m.actuator_forcerange[i])
        builder.add_actuator(
            name,
            joints,
            gain=gain[0],
            bias=bias[:3] if affine else (0.0, 0.0, 0.0),
            control=(low[0], low[1]) if limited else None,
            force=(high[0], high[1]) if m.actuator_forcelimited[i] else None,
        )
    if driven:
        builder.set_actuated(driven)


def _driven_joints(compiled: Compiled, i: int, tendons: Mapping[int, str]) -> dict[str, float] | None:
    """Return the hinges and slides, or the spring of a spatial tendon, that an actuator drives, with their
    gear ratios; None for another transmission.
    """
    m, Trn = compiled.m, compiled.mujoco.mjtTrn
    kind, target, gear = int(m.actuator_trntype[i]), int(m.actuator_trnid[i][0]), float(m.actuator_gear[i][0])
    if kind in (int(Trn.mjTRN_JOINT), int(Trn.mjTRN_JOINTINPARENT)):
        return {compiled.joints[target]: gear}
    if kind == int(Trn.mjTRN_TENDON):
        terms = fixed_tendon(compiled, target)
        if terms is not None:
            return {joint: gear * k for joint, k in terms.items()}
        return {tendons[target]: gear} if target in tendons else None
    return None


def _reason_to_omit(compiled: Compiled, i: int, joints: dict[str, float] | None) -> str:
    """Return why an actuator is left out, "" if it is not."""
    m, mujoco, name = compiled.m, compiled.mujoco, compiled.name("ACTUATOR", i)
    gain, bias, dynamics = (int(getattr(m, f"actuator_{kind}type")[i]) for kind in ("gain", "bias", "dyn"))
    if gain == int(mujoco.mjtGain.mjGAIN_MUSCLE) or bias == int(mujoco.mjtBias.mjBIAS_MUSCLE):
        what = f'actuator "{name}" is a muscle, which is not supported'
        raise compiled.error(("muscle", "general"), name, what)
    label, obj = TRANSMISSIONS.get(int(m.actuator_trntype[i]), ("unknown", "BODY"))
    target = int(m.actuator_trnid[i][0])
    if joints is None:
        return f'on {label} "{compiled.name(obj, target)}": only joints and tendons through sites are driven'
    scalar = [compiled.joints.index(joint) for joint in joints if joint in compiled.joints]
    if any(int(m.jnt_type[j]) < SLIDE or compiled.joints[j] not in compiled.places for j in scalar):
        return f'on {label} "{compiled.name(obj, target)}": only hinges and slides are driven'
    if dynamics != int(mujoco.mjtDyn.mjDYN_NONE):
        return "has activation dynamics (dyntype), which are not supported"
    affine = gain == int(mujoco.mjtGain.mjGAIN_AFFINE) and not any(m.actuator_gainprm[i][1:3])
    if gain != int(mujoco.mjtGain.mjGAIN_FIXED) and not affine:
        return "has a gain that depends on the state (gaintype), which is not supported"
    if bias not in (int(mujoco.mjtBias.mjBIAS_NONE), int(mujoco.mjtBias.mjBIAS_AFFINE)):
        return "has a bias other than affine (biastype), which is not supported"
    if m.actuator_delay[i] > 0.0:
        return "acts with a delay, which is not supported"
    if int(m.actuator_trntype[i]) == int(mujoco.mjtTrn.mjTRN_TENDON) and m.tendon_actfrclimited[target]:
        return f'on tendon "{compiled.name("TENDON", target)}", whose actuatorfrcrange is not supported'
    group = int(m.actuator_group[i])
    off = 0 <= group < 31 and m.opt.disableactuator >> group & 1
    return "is in a group that the file disables" if off or compiled.is_disabled("ACTUATION") else ""


def _add_poses(builder: ModelBuilder, compiled: Compiled, plan: Plan) -> None:
    """Add the pose in which the file places its bodies, "qpos0", and its keyframes."""
    m = compiled.m
    joints = [link for _, _, _, links in plan.chains for link in links if link.place is not None]
    names = {compiled.name("KEY", k) for k in range(m.nkey)}
    poses = [(compiled.name("KEY", k), m.key_qpos[k]) for k in range(m.nkey)]
    for name, qpos in [(unique_name(INITIAL_POSE, names), m.qpos0), *poses]:
        positions = {}
        for link in joints:
            assert link.place is not None
            positions[link.name] = floats(qpos[link.place.qpos : link.place.qpos + link.joint.nq])
        if positions:
            builder.add_pose(name, positions)


def _keyframe(compiled: Compiled, model: Model, name: str, time: float, qpos: Array, qvel: Array) -> Keyframe:
    """Return a state of MuJoCo's as one of the model; joints that the file has not are neutral."""
    q: list[Array] = []
    v: list[Array] = []
    for body in model.bodies:
        if body.dependence is not None or not body.nv:
            continue
        place = compiled.places.get(body.joint_name)
        if place is None:
            q.append(np.array(body.joint.neutral()))
            v.append(np.zeros(body.nv))
        else:
            q.append(qpos[place.qpos : place.qpos + body.nq])
            v.append(qvel[place.qvel : place.qvel + body.nv])
    q_own, v_own = convert_state(
        model, np.concatenate([[], *q]), np.concatenate([[], *v]), source="mujoco", target="dalembert"
    )
    assert v_own is not None
    return Keyframe(name, float(time), q_own, v_own)


# Tendons as springs, dampers and limits along paths.
#
# A fixed tendon is a path over joints, a spatial one leads through sites; behind a pulley of the divisor d
# its lines count 1 / d. Tendons that exert no force, have no limits and drive nothing are left out.


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
