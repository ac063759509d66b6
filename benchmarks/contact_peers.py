"""MuJoCo's models of the files of `contact_models.py`, made the same problem as ours.

MuJoCo fixes the root of a URDF file to the world, gives it no ground and does not find `package://` names.
Here the root gets a free joint where ours has one, the world a plane where ours has one, and the pairs of
shapes that may touch are those of `pairs_of`: the others, which an SRDF file or our rules leave out, are
excluded. Links on fixed joints stay bodies of their own, since exclusions name them; merged
(`fusestatic="true"`), a step of MuJoCo costs the same within 5 % (a1, anymal, go2, panda).
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Pairs = Counter[frozenset[str]]
"""How many pairs of shapes two bodies or links have, by their names."""

GROUNDS = (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD)


def mujoco_model(file: Path, model: Any) -> tuple[Any, dict[str, int]]:
    """Return MuJoCo's model of a file and the number of its pairs of shapes, with how many are missing in it
    and how many only it has: none if both are the same problem."""
    urdf = file.suffix == ".urdf"
    spec = urdf_spec(file) if urdf else mujoco.MjSpec.from_file(str(file))
    if urdf and model.joints[0].kind == "free":
        spec.worldbody.first_body().add_freejoint(name=model.joints[0].name)
    if not any(geom.type in GROUNDS for geom in spec.worldbody.geoms):
        # Like the plane of `with_ground`, it has the usual friction, which is MuJoCo's default.
        spec.worldbody.add_geom(name="ground", type=GROUNDS[0], size=[0.0, 0.0, 1.0])
    ours = our_pairs(model)
    for names in mujoco_pairs(spec.compile()):
        if names not in ours:
            first, second = sorted(names)
            spec.add_exclude(bodyname1=first, bodyname2=second)
    theirs = spec.compile()
    left = mujoco_pairs(theirs)
    missing, more = (ours - left).total(), (left - ours).total()
    return theirs, {"pairs": left.total(), "missing": missing, "more": more}


def urdf_spec(file: Path) -> Any:
    """Return the MjSpec of a URDF file without its visual shapes, whose COLLADA meshes MuJoCo does not read;
    meshes that collide are STL or OBJ."""
    from dalembert.formats.resources import Resources

    robot = ElementTree.parse(file).getroot()
    resources = Resources(file.parent)
    for link in robot.findall("link"):
        for visual in link.findall("visual"):
            link.remove(visual)
    for mesh in robot.iter("mesh"):
        mesh.set("filename", str(resources.resolve(mesh.get("filename", ""), what="mesh")))
    options = {"strippath": "false", "fusestatic": "false", "inertiafromgeom": "false"}
    ElementTree.SubElement(ElementTree.SubElement(robot, "mujoco"), "compiler", options)
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(robot, encoding="unicode"))
    for body in spec.bodies:
        xx, yy, zz, xy, xz, yz = body.fullinertia
        inertia = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        # The base of anymal, 1 mg, has two principal moments of zero up to rounding, which MuJoCo rejects.
        if body.explicitinertial and np.linalg.eigvalsh(inertia)[0] <= 0.0:
            body.fullinertia = [xx, yy, zz, 0.0, 0.0, 0.0]
    return spec


def our_pairs(model: Any) -> Pairs:
    """Return the pairs of shapes of our model that may touch."""
    from dalembert.contact.pairs import pairs_of

    names = [*model.bodies.names, "world"]  # the last one is that of -1
    name = lambda placed: placed.shape.link or names[placed.body]
    return Counter(frozenset((name(pair.first), name(pair.second))) for pair in pairs_of(model))


def mujoco_pairs(theirs: Any) -> Pairs:
    """Return the pairs of shapes that MuJoCo's masks, parents, exclusions and explicit pairs let touch."""
    weld, bodies = theirs.body_weldid, theirs.geom_bodyid
    above = weld[theirs.body_parentid[weld]]
    excluded = {frozenset((s >> 16, s & 0xFFFF)) for s in theirs.exclude_signature.tolist()}
    explicit = {frozenset(pair) for pair in zip(theirs.pair_geom1, theirs.pair_geom2, strict=True)}
    found: Pairs = Counter()
    for one, other in combinations(range(theirs.ngeom), 2):
        a, b = bodies[one], bodies[other]
        masks = theirs.geom_contype[one] & theirs.geom_conaffinity[other]
        masks |= theirs.geom_contype[other] & theirs.geom_conaffinity[one]
        related = weld[a] and weld[b] and (weld[a] == above[b] or weld[b] == above[a])
        allowed = masks and weld[a] != weld[b] and not related and frozenset((a, b)) not in excluded
        if allowed or frozenset((one, other)) in explicit:
            found[frozenset(theirs.body(i).name or f"body_{i}" for i in (a, b))] += 1
    return found


def pose_error(theirs: Any, model: Any, qpos: Array, q: Array) -> float:
    """Return the largest difference of a coordinate [m] or a rotation matrix's element between the poses of
    bodies of the same name in MuJoCo and in ours."""
    import dalembert as da

    data = mujoco.MjData(theirs)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(theirs, data)
    poses = da.forward_kinematics(model, q)
    worst = 0.0
    for name in model.bodies.names:
        if mujoco.mj_name2id(theirs, mujoco.mjtObj.mjOBJ_BODY, name) >= 0:
            place, pose = data.body(name), poses[name]
            worst = max(worst, float(np.abs(place.xpos - pose.translation).max()))
            worst = max(worst, float(np.abs(place.xmat.reshape(3, 3) - pose.rotation).max()))
    return worst
