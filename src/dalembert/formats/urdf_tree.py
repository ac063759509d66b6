"""The links of a URDF file as a tree: one root, one parent a link, no cycle, mimics that end."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Final

from dalembert.errors import MAX_LISTED_NAMES
from dalembert.formats.document import Element
from dalembert.formats.urdf_elements import UrdfJoint, UrdfLink
from dalembert.formats.urdf_values import name_of

__all__ = ["check_mimics", "refuse_duplicates", "tree_order"]

_NEAR: Final = 0.6


def refuse_duplicates(elements: Sequence[Element]) -> None:
    """Refuse two links, or two joints, of one name."""
    seen: dict[str, Element] = {}
    for element in elements:
        first = seen.setdefault(name_of(element), element)
        if first is not element:
            raise element.error(
                f'a second {element.tag} "{name_of(element)}"; the first is on line {first.line}; '
                "choose another name"
            )


def tree_order(
    robot: Element, links: Mapping[str, UrdfLink], joints: Sequence[UrdfJoint]
) -> tuple[str, list[UrdfJoint]]:
    """Return the root link, and the joints in an order in which every parent comes before its children."""
    if not links:
        raise robot.error("there is no <link>; a model needs at least one")
    above: dict[str, UrdfJoint] = {}
    below: dict[str, list[UrdfJoint]] = {name: [] for name in links}
    for joint in joints:
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in links:
                raise joint.element.error(
                    f'joint "{joint.name}" names {role} link "{name}", which does not exist'
                    f"{nearest(name, links)}"
                )
        if joint.child in above:
            raise joint.element.error(
                f'link "{joint.child}" is the child of two joints, "{above[joint.child].name}" (line '
                f'{above[joint.child].element.line}) and "{joint.name}"; URDF holds trees only: leave one '
                "joint out and close the loop with ModelBuilder.add_loop"
            )
        above[joint.child] = joint
        below[joint.parent].append(joint)
    _refuse_cycle(links, above)
    roots = [name for name in links if name not in above]
    if len(roots) > 1:
        listed = ", ".join(f'"{name}" (line {links[name].element.line})' for name in roots[:MAX_LISTED_NAMES])
        more = f", … ({len(roots)} in all)" if len(roots) > MAX_LISTED_NAMES else ""
        raise links[roots[1]].element.error(
            f"the links {listed}{more} are the child of no joint; a model has one root: join the others to it"
        )
    order: list[UrdfJoint] = []
    waiting = list(reversed(below[roots[0]]))
    while waiting:
        joint = waiting.pop()
        order.append(joint)
        waiting.extend(reversed(below[joint.child]))
    return roots[0], order


def _refuse_cycle(links: Mapping[str, UrdfLink], above: Mapping[str, UrdfJoint]) -> None:
    walk_of: dict[str, str] = {}
    for start in links:
        name = start
        while name in above and name not in walk_of:
            walk_of[name] = start
            name = above[name].parent
        if name in above and walk_of[name] == start:
            loop = [name]
            at = above[name].parent
            while at != name:
                loop.append(at)
                at = above[at].parent
            shown = " -> ".join(f'"{item}"' for item in [*reversed(loop[:MAX_LISTED_NAMES]), loop[-1]])
            raise links[name].element.error(
                f"the links {shown} form a cycle; URDF holds trees only: leave one joint out and close the "
                "loop with ModelBuilder.add_loop"
            )


def check_mimics(joints: Sequence[UrdfJoint]) -> None:
    """Check that leaders exist, have at most one freedom, and do not follow their followers."""
    by_name = {joint.name: joint for joint in joints}
    cleared: set[str] = set()
    for joint in joints:
        path: list[str] = []
        on_path: set[str] = set()
        at = joint
        while at.mimic is not None and at.name not in cleared:
            path.append(at.name)
            on_path.add(at.name)
            leader = by_name.get(at.mimic.leader)
            if leader is None:
                raise at.mimic.element.error(
                    f'joint "{at.name}" mimics "{at.mimic.leader}", which does not exist'
                    f"{nearest(at.mimic.leader, by_name)}"
                )
            if leader.type in ("floating", "planar"):
                raise at.mimic.element.error(
                    f'joint "{at.name}" mimics "{leader.name}", a {leader.type} joint; only a joint of one '
                    "freedom can be mimicked"
                )
            if leader.name in on_path:
                loop = path[path.index(leader.name) :][:MAX_LISTED_NAMES]
                shown = " -> ".join(f'"{name}"' for name in [*loop, leader.name])
                raise at.mimic.element.error(f"the joints {shown} mimic each other in a cycle; one must lead")
            at = leader
        cleared.update(path)


def nearest(name: str, known: Mapping[str, object]) -> str:
    """Return a hint at the names of similar spelling."""
    found = difflib.get_close_matches(name[:100], known, n=3, cutoff=_NEAR)
    return "; nearest: " + ", ".join(f'"{item}"' for item in found) if found else ""
