"""MJCF, the model files of MuJoCo: compiled by MuJoCo itself, then copied into a model of ours.

MuJoCo opens no file: it gets a text and the bytes of meshes that were read and examined here (`mjcf_files`).
Our q is MuJoCo's qpos where no equality couples joints and the root is left as the file says; v differs in
free joints (`convert_state(…, source="mujoco", target="dalembert")`). Nothing that changes the dynamics is
dropped: it is kept or refused. What cannot change them is listed in `model.report`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from dalembert.errors import (
    ArgumentError,
    DalembertError,
    FileError,
    InertiaError,
    MissingExtraError,
    UnknownNameError,
)
from dalembert.formats.mjcf_actuators import (
    Actuator,
    Keyframe,
    actuators_of,
    keyframes_of,
    reflect_rotors,
    start_of,
)
from dalembert.formats.mjcf_compiled import Compiled
from dalembert.formats.mjcf_constraints import add_equalities, check_tendons
from dalembert.formats.mjcf_contact import add_contact
from dalembert.formats.mjcf_files import Source, read_source
from dalembert.formats.mjcf_geometry import add_sites, shapes_of
from dalembert.formats.mjcf_tree import Plan, add_bodies, plan_bodies
from dalembert.formats.report import Report
from dalembert.model import Model, ModelBuilder
from dalembert.model.values import rebuilt

__all__ = ["MjcfFile", "load_mjcf", "read_mjcf"]

INERTIA_OPTIONS: Final = ("as_given", "strict", "repair")
ROOT_OPTIONS: Final = ("fixed", "floating")

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


@final
@dataclass(frozen=True, eq=False)
class MjcfFile:
    """The content of an MJCF file: the model, and its actuators and keyframes as data; `start` is the state
    in which the file places its bodies (`model.neutral()` has free bodies at the origin of the world).
    """

    model: Model
    actuators: tuple[Actuator, ...]
    keyframes: tuple[Keyframe, ...]
    start: Keyframe


def load_mjcf(
    path: str | os.PathLike[str],
    *,
    root: str | None = None,
    inertia: str = "as_given",
    roots: Sequence[str | os.PathLike[str]] = (),
    trusted: bool = False,
) -> Model:
    """Load the model of an MJCF file.

    `root`: None as the file says; "fixed" takes free joints away, "floating" sets the one body on the world
    free. `inertia`: "as_given", "strict", or "repair", which lets MuJoCo average moments that no body has.
    Files that the model names lie below its own folder or one of `roots`, unless it is `trusted`.
    """
    return read_mjcf(path, root=root, inertia=inertia, roots=roots, trusted=trusted).model


def read_mjcf(
    path: str | os.PathLike[str],
    *,
    root: str | None = None,
    inertia: str = "as_given",
    roots: Sequence[str | os.PathLike[str]] = (),
    trusted: bool = False,
) -> MjcfFile:
    """Read the model of an MJCF file with the actuators and keyframes; arguments as in `load_mjcf`."""
    if root is not None and root not in ROOT_OPTIONS:
        raise UnknownNameError.of("root", root, ROOT_OPTIONS)
    if inertia not in INERTIA_OPTIONS:
        raise UnknownNameError.of("inertia option", inertia, INERTIA_OPTIONS)
    mujoco = _mujoco()
    file = Path(path)
    balance = inertia == "repair"
    source = read_source(file, [Path(item) for item in roots], trusted=trusted, balance=balance)
    report = Report()
    if source.skins:
        report.note(f"ignored: {source.skins} skins")
    m = _compile(mujoco, source, report)
    compiled = Compiled(mujoco, m, source, report)
    try:
        return _convert(compiled, root, inertia)
    except (FileError, InertiaError):
        raise
    except DalembertError as error:
        raise FileError(f"{file}: {error}") from error


def _mujoco() -> Any:
    try:
        import mujoco
    except ImportError as cause:
        raise MissingExtraError(
            "MJCF files are compiled by MuJoCo, which is not installed; "
            "install it with: pip install 'dalembert[mjcf]'"
        ) from cause
    return mujoco


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
    if m.nbody == 1 and not m.ngeom:
        raise FileError(
            f"{compiled.source.path}: there is no body in the file; it may be a part of another one"
        )
    _refuse_media(compiled)
    reflect_rotors(compiled)
    plan = plan_bodies(compiled, root)
    compiled.shapes.update(shapes_of(compiled, plan.homes))
    builder = ModelBuilder(gravity=_gravity(compiled, plan), name=_model_name(m))
    add_bodies(builder, compiled, plan)
    add_contact(builder, compiled, plan)
    taken = {*compiled.bodies, *(name for name, _ in plan.frames)}
    add_sites(builder, compiled, plan.homes, taken)
    check_tendons(compiled)
    held = add_equalities(builder, compiled, plan.homes)
    actuators = actuators_of(compiled)
    driven = dict.fromkeys(
        joint for item in actuators for joint, _ in item.joints if joint in compiled.places
    )
    if driven:
        builder.set_actuated(driven)
    _list_the_rest(compiled)
    for line in report.lines():
        builder.warn(line)
    model = builder.build(inertia="strict" if inertia == "strict" else "as_given")
    if held:
        model = _lock_joints(model, held)
    return MjcfFile(model, actuators, keyframes_of(compiled, model), start_of(compiled, model))


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


def _refuse_media(compiled: Compiled) -> None:
    """Refuse fluids, flexible bodies and plugins; report mocap bodies."""
    m = compiled.m
    path = compiled.source.path
    if m.nv and (m.opt.density or m.opt.viscosity):
        raise FileError(
            f"{path}: the bodies move in a fluid (density {m.opt.density:g}, viscosity {m.opt.viscosity:g} "
            "in <option>), whose forces are not supported; set both to 0 to leave them out"
        )
    if m.nflex:
        raise FileError(f"{path}: flexible bodies (flex) are not supported")
    if m.nplugin:
        raise FileError(f"{path}: plugins are not supported")
    if m.nmocap:
        compiled.report.note(f"{m.nmocap} mocap bodies are fixed to the world where the file puts them")


def _gravity(compiled: Compiled, plan: Plan) -> tuple[float, ...]:
    """Return gravity as it acts on the moving bodies.

    MuJoCo's gravcomp lifts a body by that share of its weight. The same share on all moving bodies is a
    weaker gravity; different shares cannot be had with one gravity for all.
    """
    m = compiled.m
    if compiled.is_disabled("GRAVITY") or not any(m.opt.gravity):
        return 0.0, 0.0, 0.0
    moving = [b for b in range(1, m.nbody) if plan.homes[b].body != "world" and m.body_mass[b] > 0.0]
    shares = {float(m.body_gravcomp[b]) for b in moving}
    if len(shares) > 1:
        lifted = compiled.bodies[next(b for b in moving if m.body_gravcomp[b])]
        raise compiled.error(
            "body",
            lifted,
            f'body "{lifted}" has gravcomp, which other moving bodies have not in the same measure; a model '
            "has one gravity for all: set gravcomp to 0, or to the same number on all bodies",
        )
    share = shares.pop() if shares else 0.0
    if share:
        compiled.report.note(f"gravity is reduced by {share:g} of itself, the gravcomp of every moving body")
    return tuple(float(x) * (1.0 - share) for x in m.opt.gravity)


def _model_name(m: Any) -> str:
    return bytes(m.names).split(b"\0", 1)[0].decode("utf-8", "replace").strip() or "model"


def _list_the_rest(compiled: Compiled) -> None:
    m = compiled.m
    for count, what in LISTED.items():
        if getattr(m, count):
            compiled.report.note(f"ignored: {getattr(m, count)} {what}")
