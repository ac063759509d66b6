"""URDF files as models, on our own reader.

A link becomes a body; links on fixed joints are merged into the body that carries them, their frames kept
under their names. A link's frame is its joint's successor frame, as in ours. The root link is the world
itself, or a free body with `root="floating"`. Gravity is (0, 0, -9.81): URDF has none.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import MAX_LISTED_NAMES, FileError, InertiaError, ModelError
from dalembert.formats.document import Element, read_document
from dalembert.formats.resources import (
    MAX_FILE_BYTES,
    InertiaOption,
    MissingResourceError,
    Report,
    Resources,
    RootOption,
    check_options,
    read_regular_file,
)
from dalembert.formats.urdf.elements import (
    MeshPath,
    UrdfJoint,
    UrdfLink,
    check_words,
    read_joint,
    read_link,
    read_materials,
)
from dalembert.formats.urdf.srdf import Srdf, excluded_links, find_srdf, positions_in, read_srdf
from dalembert.model import Model, ModelBuilder
from dalembert.model.joints import Fixed, Free
from dalembert.model.shapes import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from dalembert.model.surgery import Call, merge_fixed
from dalembert.spatial import RigidInertia, Transform, physical_problems

__all__ = ["load_urdf", "nearest_physical"]

WORLD: Final = "world"
MAX_LISTED_LINKS: Final = 10

_TOO_MANY_SLASHES: Final = re.compile("^package:///+")
"""A typing error in released files that other readers accept."""

_OTHER_ROOTS: Final = {
    "sdf": "this is SDF, which is not supported; convert it to URDF first",
    "mujoco": 'this is MJCF; give the file the ending .xml and load it with da.load("model.xml")',
    "mujocoinclude": "this is a part of an MJCF model; load the .xml file that includes it",
    "COLLADA": "this is a COLLADA mesh, not a model",
}


def load_urdf(
    content: bytes,
    *,
    name: str,
    folder: Path | None = None,
    root: RootOption = None,
    inertia: InertiaOption = "as_given",
    roots: Sequence[Path] = (),
    trusted: bool = False,
    srdf: Path | Literal[False] | None = False,
) -> Model:
    """Load the model in a URDF file's content; `name` is the file's name in messages, `folder` holds its
    meshes.

    `root`: "floating" gives the root link six freedoms; "fixed" and None join it to the world. `inertia`:
    what to do with inertias that no body can have, once fixed links are merged: use them "as_given" and
    report, reject them ("strict"), or "repair" them to the nearest possible ones. Meshes are looked for
    below the folder and `roots`, and not read. `srdf`: the file with poses and links that never touch; None
    looks for it beside the folder; False: none.
    """
    check_options(root, inertia)
    report = Report()
    robot = read_document(content, name=name)
    if robot.tag != "robot":
        other = f"the root element is <{robot.tag[:40]}>; a URDF file has <robot>"
        raise robot.error(_OTHER_ROOTS.get(robot.tag, other))
    check_words(robot, report)
    _reject_duplicates(robot.all("link"))
    _reject_duplicates(robot.all("joint"))
    missing: list[str] = []
    mesh_path = _mesh_finder(None if folder is None else Resources(folder, roots, trusted=trusted), missing)
    materials = read_materials(robot)
    read = [read_link(element, materials, mesh_path, report) for element in robot.all("link")]
    links = {link.name: link for link in read}
    if missing:
        more = f" ({len(missing)} meshes like this)" if len(missing) > 1 else ""
        report.warn(f"{missing[0]}{more}")
    base, order = _tree_order(robot, links, [read_joint(element, report) for element in robot.all("joint")])
    locked = _locked_positions(order, report)
    _report_sizes(links, order, report)
    try:
        semantics = _read_semantics(srdf, Path(name), robot, report)
        return _assemble(robot, UrdfTree(links, base, order, locked), root, inertia, semantics, report)
    except (FileError, InertiaError):
        raise
    except ModelError as error:  # numbers that are finite one by one, but not together
        raise robot.error(str(error)) from error


def _read_semantics(
    srdf: Path | Literal[False] | None, file: Path, robot: Element, report: Report
) -> Srdf | None:
    """Return the content of the SRDF file; one that was found and cannot be read is reported."""
    if srdf is False:
        return None
    path = srdf or find_srdf(file, robot.attributes.get("name", ""))
    if path is None:
        return None
    lines = Report()
    try:
        found = read_srdf(read_regular_file(path, limit=MAX_FILE_BYTES), name=str(path), report=lines)
    except FileError as error:
        if srdf is not None:
            raise
        report.warn(f"not used: {error}")
        return None
    names = ", ".join(f'"{name}"' for name, _ in found.poses[:MAX_LISTED_NAMES])
    beside = "" if srdf is not None else " (srdf=False leaves it out)"
    disabled = f"{len(found.disabled)} pairs of links that never touch"
    report.note(f"read {path}: {disabled}, poses: {names or 'none'}{beside}")
    for line in lines.lines():
        report.note(line)
    return found


def _mesh_finder(resources: Resources | None, missing: list[str]) -> MeshPath:
    """Return the function that turns the name of a mesh into (path, True), or into (name, False) if the file
    cannot be read.

    Names of forbidden places are rejected at once. A name that merely climbs out of the folder, as
    `../meshes/hand.stl` does, is common and harmless since the mesh is never read: it is `missing`, like a
    file that is not there.
    """
    known: dict[str, tuple[str, bool]] = {}

    def path(element: Element, filename: str) -> tuple[str, bool]:
        if filename in known or resources is None:
            return known.get(filename, (filename, False))
        try:
            found = resources.resolve(_TOO_MANY_SLASHES.sub("package://", filename), what="mesh")
            known[filename] = str(found), True
        except FileError as error:
            relative = not filename.startswith(("/", "~")) and ":" not in filename
            climbs = relative and ".." in filename.split("/")
            if not climbs and not isinstance(error, MissingResourceError):
                raise element.error(str(error)) from None
            known[filename] = filename, False
            missing.append(f"{element.place}: {error}")
        return known[filename]

    return path


# The links as a tree: one root, one parent a link, no cycle, mimics that end


def _reject_duplicates(elements: Sequence[Element]) -> None:
    seen: dict[str, Element] = {}
    for element in elements:
        first = seen.setdefault(element.name(), element)
        what = f'a second {element.tag} "{element.name()}"; the first is on line {first.line}'
        element.require(first is element, f"{what}; choose another name")


def _tree_order(
    robot: Element, links: Mapping[str, UrdfLink], joints: Sequence[UrdfJoint]
) -> tuple[str, list[UrdfJoint]]:
    """Return the root link, and the joints in an order in which every parent comes before its children."""
    robot.require(links, "there is no <link>; a model needs at least one")
    above: dict[str, UrdfJoint] = {}
    below: dict[str, list[UrdfJoint]] = {name: [] for name in links}
    for joint in joints:
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in links:
                what = f'joint "{joint.name}" names {role} link "{name}", which does not exist'
                raise joint.element.error(what + _nearest(name, links))
        if joint.child in above:
            first = above[joint.child]
            raise joint.element.error(
                f'link "{joint.child}" is the child of two joints, "{first.name}" (line '
                f'{first.element.line}) and "{joint.name}"; URDF holds trees only: leave one joint out and '
                "close the loop with ModelBuilder.add_loop"
            )
        above[joint.child] = joint
        below[joint.parent].append(joint)
    roots = [name for name in links if name not in above]
    order: list[UrdfJoint] = []
    waiting = [joint for root in reversed(roots) for joint in reversed(below[root])]
    while waiting:
        joint = waiting.pop()
        order.append(joint)
        waiting.extend(reversed(below[joint.child]))
    if len(order) < len(joints):  # a link that hangs on no root stands below a cycle, or in it
        reached = {joint.child for joint in order}
        name = next(name for name in above if name not in reached)
        seen: dict[str, None] = {}
        while name not in seen:
            seen[name] = None
            name = above[name].parent
        loop = [*seen][[*seen].index(name) :]
        shown = " -> ".join(f'"{item}"' for item in [*reversed(loop[:MAX_LISTED_NAMES]), loop[-1]])
        raise links[name].element.error(
            f"the links {shown} form a cycle; URDF holds trees only: leave one joint out and close the loop "
            "with ModelBuilder.add_loop"
        )
    if len(roots) > 1:
        listed = ", ".join(f'"{name}" (line {links[name].element.line})' for name in roots[:MAX_LISTED_NAMES])
        more = f", … ({len(roots)} in all)" if len(roots) > MAX_LISTED_NAMES else ""
        raise links[roots[1]].element.error(
            f"the links {listed}{more} are the child of no joint; a model has one root: join the others to it"
        )
    return roots[0], order


def _locked_positions(joints: Sequence[UrdfJoint], report: Report) -> dict[str, float | None]:
    """Return the position of every joint that does not move, and None for the others; check the mimics.

    A joint that follows with ratio 0, or follows a joint that does not move, stays at its offset.
    """
    by_name = {joint.name: joint for joint in joints}
    found: dict[str, float | None] = {}
    for joint in joints:
        path: dict[str, UrdfJoint] = {}
        at = joint
        while at.mimic is not None and at.name not in found:
            path[at.name] = at
            at = _leader(at, path, by_name)
        position = found.setdefault(at.name, 0.0 if at.type == "fixed" else None)
        for follower in reversed(path.values()):
            assert follower.mimic is not None
            ratio, offset = follower.mimic.multiplier, follower.mimic.offset
            if ratio == 0.0 or position is not None:
                position = ratio * (position or 0.0) + offset
                report.note(
                    f'{follower.element.place}: joint "{follower.name}" follows a joint that does not move; '
                    f"it is fixed at {position:g}"
                )
            found[follower.name] = position
    return found


def _leader(joint: UrdfJoint, path: Mapping[str, UrdfJoint], by_name: Mapping[str, UrdfJoint]) -> UrdfJoint:
    """Return the joint that a joint mimics: it exists, has at most one freedom, and follows no follower."""
    assert joint.mimic is not None
    element, name = joint.mimic.element, joint.mimic.leader
    leader = by_name.get(name)
    what = f'joint "{joint.name}" mimics "{name}"'
    if leader is None:
        raise element.error(f"{what}, which does not exist{_nearest(name, by_name)}")
    only = f"a {leader.type} joint; only a joint of one freedom can be mimicked"
    element.require(leader.type not in ("floating", "planar"), f"{what}, {only}")
    if name in path:
        loop = [*path][[*path].index(name) :][:MAX_LISTED_NAMES]
        shown = " -> ".join(f'"{item}"' for item in [*loop, name])
        raise element.error(f"the joints {shown} mimic each other in a cycle; one must lead")
    return leader


def _nearest(name: str, known: Mapping[str, object]) -> str:
    """Return a hint at the names of similar spelling."""
    found = difflib.get_close_matches(name[:100], known, n=3, cutoff=0.6)
    return "; nearest: " + ", ".join(f'"{item}"' for item in found) if found else ""


# A check that a link's mass lies where the link is: if not, inertias may be in other units (g mm^2)

MAX_GYRATION_TO_SIZE_RATIO: Final = 10.0
"""Links whose radius of gyration exceeds their size by this factor are reported."""
MIN_LINK_SIZE: Final = 1e-6
"""Sizes [m] below this are rounding errors of coincident joints, and say nothing about the link."""


def _report_sizes(links: Mapping[str, UrdfLink], joints: Sequence[UrdfJoint], report: Report) -> None:
    """Report links whose radius of gyration about the centre of mass is over ten times their size.

    The size is the distance from the link's origin to its farthest shape or joint, or to its centre of mass.
    Links with meshes are passed over: meshes are not read here.
    """
    farthest: dict[str, float] = {}
    for joint in joints:
        farthest[joint.parent] = max(farthest.get(joint.parent, 0.0), math.hypot(*joint.placement.p))
    for name, link in links.items():
        mass = link.inertia.mass
        if mass == 0.0 or any(isinstance(shape, Mesh) for shape in link.shapes):
            continue
        size = max([farthest.get(name, 0.0), *(_reach(shape) for shape in link.shapes)])
        I = link.inertia.inertia_at_com
        # The greatest principal moment lies between the greatest diagonal element and the trace.
        radius = math.sqrt(max(I.xx, I.yy, I.zz, 0.0) / mass)
        extent = max(size, math.hypot(*link.inertia.com))
        if size > MIN_LINK_SIZE and radius > MAX_GYRATION_TO_SIZE_RATIO * extent:
            report.warn(
                f"{link.element.place}: the radius of gyration is {radius:.3g} m, but the link's shapes and "
                f"joints lie within {size:.3g} m; check the units of its inertia"
            )


def _reach(shape: Shape) -> float:
    """Return a bound of the distance from the link's origin to the farthest point of a shape [m]."""
    half = 0.0
    if isinstance(shape, Box):
        half = 0.5 * math.hypot(*shape.size)
    elif isinstance(shape, Sphere):
        half = shape.radius
    elif isinstance(shape, Cylinder):
        half = math.hypot(shape.radius, 0.5 * shape.length)
    elif isinstance(shape, Capsule):
        half = shape.radius + 0.5 * shape.length
    return math.hypot(*shape.placement.as_transform().p) + half


# Links and joints put together

Bodies = dict[str, dict[str, Any]]
"""The arguments of `ModelBuilder.add_body` by the names of the bodies."""
Elements = Mapping[str, Element]
"""The element that messages about a body name."""


@final
class UrdfTree(NamedTuple):
    """The links, the root link, the joints from it outward, and where those stay that do not move."""

    links: Mapping[str, UrdfLink]
    base: str
    order: Sequence[UrdfJoint]
    locked: Mapping[str, float | None]


def _assemble(
    robot: Element,
    tree: UrdfTree,
    root: RootOption,
    inertia: InertiaOption,
    srdf: Srdf | None,
    report: Report,
) -> Model:
    """Return the model with fixed links merged into the bodies that carry them."""
    links, base, order, locked = tree
    named, calls = _link_calls(tree, root, report)
    if srdf is not None:
        joints = {own["joint_name"]: own["joint"] for method, own in calls if method == "add_body"}
        root_joint = next((own["joint_name"] for _, own in calls if own.get("name") == named[base]), "")
        for name, positions in positions_in(srdf, joints, (root_joint, base), report):
            calls.append(("add_pose", {"name": name, "positions": positions}))
        for first, second in excluded_links(srdf, links):
            calls.append(("exclude_contact", {"body": named[first], "other": named[second]}))
    elements = {body: links[link].element for link, body in named.items()}
    calls = merge_fixed(calls)
    bodies = {given["name"]: given for method, given in calls if method == "add_body"}
    what = f'no link moves: everything is fixed to link "{base}"; root="floating" makes it a free body'
    robot.require(bodies, what)
    fixed = {given["name"] for method, given in calls if method == "add_frame" and given["body"] == WORLD}
    lost = [
        link for link, body in named.items() if body in {*fixed, WORLD} and any(links[link].inertia.leaves())
    ]
    if lost:
        listed = ", ".join(f'"{name}"' for name in lost[:MAX_LISTED_LINKS])
        more = f", … ({len(lost)} in all)" if len(lost) > MAX_LISTED_LINKS else ""
        what = f"links fixed to the world: the inertia of {listed}{more} is ignored"
        report.note(f'{what}; root="floating" keeps it')
    _report_weightless(bodies, elements, report)
    if inertia != "as_given":
        _correct_inertias(bodies, elements, inertia, report)
    builder = ModelBuilder(name=robot.attributes.get("name", "").strip() or "robot")
    for method, given in calls:
        getattr(builder, method)(**given)
    for first, second in _links_at_the_base(calls):
        builder.exclude_contact(first, second)
    for joint in order:
        if joint.mimic is not None and locked[joint.name] is None:
            terms = {joint.mimic.leader: -joint.mimic.multiplier, joint.name: 1.0}
            builder.add_coupling(joint.name, terms, offset=-joint.mimic.offset, dependent=joint.name)
    for line in report.lines():
        builder.warn(line)
    return builder.build(inertia="as_given")


def _links_at_the_base(calls: Sequence[Call]) -> list[tuple[str, str]]:
    """Return the pairs of a link that is fixed to the world and a link of a body on it: like a body and its
    parent, which the base is where it floats, they never touch."""
    on_world = {given["name"] for method, given in calls if method == "add_body" and given["parent"] == WORLD}
    colliding = [
        (given["body"], given["shape"].link)
        for method, given in calls
        if method == "add_shape" and given["shape"].collision
    ]
    merged = [(body, link) for body, link in dict.fromkeys(colliding) if link]
    base = [link for body, link in merged if body == WORLD]
    moving = [*on_world, *(link for body, link in merged if body in on_world)]
    return [(link, other) for link in base for other in sorted(moving)]


def _link_calls(tree: UrdfTree, root: RootOption, report: Report) -> tuple[dict[str, str], list[Call]]:
    """Return the body for each link, root first, and the calls of a builder that add them all, also those
    that are fixed to their parents.
    """
    links, base, order, locked = tree
    first = [joint for joint in order if joint.parent == base]
    floats_already = len(first) == 1 and first[0].type == "floating" and links[base].inertia.mass == 0.0
    taken = {joint.name for joint in order}
    numbered = (f"root_joint_{n}" for n in count(2))
    root_joint = next(name for name in chain(["root_joint"], numbered) if name not in taken)
    free = root == "floating" and not floats_already
    named = {link: link for link in [base, *(joint.child for joint in order)]}
    if WORLD in named and (free or base != WORLD):
        while named[WORLD] in (WORLD, *links):
            named[WORLD] = "world_link" if named[WORLD] == WORLD else named[WORLD] + "_"
        place = links[WORLD].element.place
        report.note(f'{place}: this link is called "{named[WORLD]}", since "world" is the fixed base')
    given = {"parent": WORLD, "placement": Transform.identity(), "joint_name": root_joint}
    joints: dict[str, dict[str, Any]] = {base: given | {"joint": Free() if free else Fixed()}}
    for at in order:
        words = ("joint", "placement", "limits", "damping", "friction")
        joints[at.child] = {word: getattr(at, word) for word in words}
        joints[at.child] |= {"parent": named[at.parent], "joint_name": at.name}
        position = locked[at.name] if at.mimic is not None else None
        if position is not None:
            joints[at.child] |= {"placement": at.placement @ at.joint.transform([position]), "joint": Fixed()}
    calls: list[Call] = []
    for link, own in joints.items():
        inertia, shapes = links[link].inertia, links[link].shapes
        if named[link] == WORLD:
            calls += [("add_shape", {"body": WORLD, "shape": shape}) for shape in shapes]
        else:
            calls.append(("add_body", {"name": named[link], "inertia": inertia, "shapes": shapes, **own}))
    return named, calls


def _report_weightless(bodies: Bodies, elements: Elements, report: Report) -> None:
    """Report joints that move no mass: forward dynamics would divide by zero there."""
    weighs: set[str] = set()
    has_child = {body["parent"] for body in bodies.values()}
    for name, body in reversed(bodies.items()):
        if name in weighs or any(body["inertia"].leaves()):
            weighs.update((name, body["parent"]))
        elif name in has_child:
            report.warn(
                f'{elements[name].place}: joint "{body["joint_name"]}" moves link "{name}", which '
                "has no mass and carries none; its acceleration is undefined"
            )


def _correct_inertias(
    bodies: Mapping[str, dict[str, Any]],
    elements: Mapping[str, Element],
    option: InertiaOption,
    report: Report,
) -> None:
    """Reject or repair what no body can have."""
    for name, body in bodies.items():
        inertia, element = body["inertia"], elements[name]
        problems = "; ".join(physical_problems(inertia))
        if not problems:
            continue
        finite = all(math.isfinite(number) for number in inertia.leaves())
        element.require(finite, f'link "{name}" with all that is fixed to it: {problems}')
        if option == "strict":
            raise InertiaError(
                f'{element.place}: the inertia of link "{name}" with all that is fixed to it: '
                f'{problems}; correct it, or load with inertia="as_given" or "repair"'
            )
        body["inertia"] = nearest_physical(inertia)
        about_com = _about_com(body["inertia"])
        overflows = not np.isfinite(about_com).all()
        moments = [math.nan] * 3 if overflows else np.linalg.eigvalsh(about_com)
        shown = ", ".join(f"{moment:.6g}" for moment in moments)
        report.repair(f"{element.place}: {problems}; now they are {shown} kg m^2")


# The nearest inertia that a body can have. The principal moments (A, B, C) about the centre of mass of a
# non-negative density fill the cone
#
#     A <= B + C,  B <= C + A,  C <= A + B                                                       (1)
#
# whose edges are the thin rods (0, 1, 1), (1, 0, 1), (1, 1, 0). Since (1) is the same for every order of the
# moments, the matrix nearest to a given one (Frobenius norm) has its principal axes, and moments that are the
# projection of the given ones on the cone.

_EDGES: Final = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
_ROUNDING: Final = 1e-12


def nearest_physical(inertia: RigidInertia) -> RigidInertia:
    """Return the nearest physical inertia with the same mass and centre of mass; a physical one is returned
    as it is.

    A body without mass can have no moments at all. Numbers that are not finite (a far centre of mass makes
    moments overflow) have nothing near them and are returned for the model's builder to reject.
    """
    if not physical_problems(inertia) or not all(math.isfinite(number) for number in inertia.leaves()):
        return inertia
    if inertia.mass == 0.0:
        return RigidInertia.zero()
    about_com = _about_com(inertia)
    if not np.isfinite(about_com).all():
        return inertia
    moments, axes = np.linalg.eigh(about_com)
    # The point of the cone (1) nearest to the moments: inside, on a face, on an edge, or its tip.
    candidates = [np.zeros(3)]
    for members in ([0, 1, 2], [0, 1], [0, 2], [1, 2], [0], [1], [2]):
        edges = _EDGES[members]
        weights = np.linalg.lstsq(edges.T, moments, rcond=None)[0]
        if np.all(weights >= -_ROUNDING * np.abs(moments).max()):
            candidates.append(np.maximum(weights, 0.0) @ edges)
    nearest = min(candidates, key=lambda point: float(np.linalg.norm(point - moments)))
    I = (axes * nearest) @ axes.T
    return RigidInertia(inertia.mass, inertia.com, I.tolist())


def _about_com(inertia: RigidInertia) -> npt.NDArray[np.float64]:
    return np.array(inertia.inertia_at_com.to_list(), dtype=float)
