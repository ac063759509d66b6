"""SRDF files, which say what a URDF file cannot: named poses, and links that never touch.

Poses (`group_state`) become poses of the model and disabled pairs (`disable_collisions`,
`disable_default_collisions` without the pairs of `enable_collisions`) exclusions from contact. The position
of a floating joint is x, y, z [m] and a quaternion (x, y, z, w), as Pinocchio writes it. Groups, end
effectors and the like have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, final

from dalembert.errors import FileError
from dalembert.formats.document import Element, read_document
from dalembert.formats.resources import MAX_FILE_BYTES, Report, read_regular_file
from dalembert.model.joints import Free, Joint

MAX_SEARCHED: Final = 50
"""Files of a folder that are opened to find the one of a robot."""

KNOWN: Final = (
    "group_state", "disable_collisions", "disable_default_collisions", "enable_collisions", "virtual_joint",
)  # fmt: skip
"""The elements that have an effect."""


@final
class Srdf(NamedTuple):
    """The content of an SRDF file: the name of its robot, positions of joints by the names of poses, pairs of
    links that never touch, links that by default touch no other, pairs that do, and virtual joints by their
    names, with the links that they carry.
    """

    file: str
    robot: str
    poses: tuple[tuple[str, tuple[tuple[str, tuple[float, ...]], ...]], ...]
    disabled: tuple[tuple[str, str], ...]
    untouched: tuple[str, ...]
    enabled: frozenset[frozenset[str]]
    virtual: Mapping[str, str]


def read_srdf(content: bytes, *, name: str, report: Report) -> Srdf:
    """Read the content of an SRDF file; `name` is its name in messages."""
    robot = read_document(content, name=name)
    robot.require(robot.tag == "robot", f"the root element is <{robot.tag[:40]}>; an SRDF file has <robot>")
    for child in robot.children:
        if child.tag not in KNOWN:
            report.ignore(f"<{child.tag[:40]}> in {Path(name).name}", child.line)
    return Srdf(
        name,
        robot.attributes.get("name", ""),
        tuple(_poses(robot)),
        tuple(_pair(element) for element in robot.all("disable_collisions")),
        tuple(element.attribute("link") for element in robot.all("disable_default_collisions")),
        frozenset(frozenset(_pair(element)) for element in robot.all("enable_collisions")),
        {item.name(): item.attributes.get("child_link", "") for item in robot.all("virtual_joint")},
    )


def _pair(element: Element) -> tuple[str, str]:
    return element.attribute("link1"), element.attribute("link2")


def _poses(robot: Element) -> Iterator[tuple[str, tuple[tuple[str, tuple[float, ...]], ...]]]:
    """Yield the poses; states of one name that share a joint are told apart by their groups."""
    seen: dict[str, set[str]] = {}
    for state in robot.all("group_state"):
        name, positions = state.name(), []
        for joint in state.all("joint"):
            words = joint.attribute("value").split()
            positions.append((joint.name(), joint.numbers("value", len(words)) if words else ()))
        joints = {joint for joint, _ in positions}
        if seen.get(name, set()) & joints:
            name = f"{state.attributes.get('group', '')}:{name}"
        seen.setdefault(name, set()).update(joints)
        yield name, tuple(positions)


def find_srdf(file: Path, robot: str) -> Path | None:
    """Return the SRDF file of a URDF file in the folder "srdf" beside its own, if it is the only one: that of
    the same file name, else that of the same robot name.
    """
    folder = (file.resolve().parent.parent / "srdf").resolve()
    named = folder / f"{file.stem}.srdf"
    if _lies_in(named, folder):
        return named
    try:
        files = sorted(islice(folder.glob("*.srdf"), MAX_SEARCHED))
    except OSError:
        return None
    found = [path for path in files if _lies_in(path, folder) and robot and _robot_of(path) == robot]
    return found[0] if len(found) == 1 else None


def _lies_in(path: Path, folder: Path) -> bool:
    """Return whether a path is a regular file in a folder, and no link that leads out of it."""
    try:
        return path.is_file() and path.resolve().parent == folder
    except OSError:
        return False


def _robot_of(path: Path) -> str:
    """Return the name of the robot in an SRDF file; "" if it cannot be read."""
    try:
        content = read_regular_file(path, limit=MAX_FILE_BYTES)
        return read_document(content, name=str(path)).attributes.get("name", "")
    except FileError:
        return ""


def excluded_links(srdf: Srdf, links: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return the pairs of links that never touch, each once."""
    pairs = list(srdf.disabled)
    for link in srdf.untouched:
        pairs += [(link, other) for other in links if frozenset((link, other)) not in srdf.enabled]
    known = {frozenset(pair): pair for pair in pairs if set(pair) <= {*links} and pair[0] != pair[1]}
    return [*known.values()]


def positions_in(
    srdf: Srdf, joints: Mapping[str, Joint], root: tuple[str, str], report: Report
) -> Iterator[tuple[str, dict[str, tuple[float, ...]]]]:
    """Yield the poses as positions of the joints that move; `root`: the root's joint and the root link, which
    virtual joints may mean.
    """
    for name, positions in srdf.poses:
        found, others = {}, []
        for given, numbers in positions:
            joint = root[0] if srdf.virtual.get(given) == root[1] and given not in joints else given
            if joint not in joints or len(numbers) != joints[joint].nq:
                others += [given] * (joint not in joints or joints[joint].nq > 0)
                continue
            if isinstance(joints[joint], Free):
                x, y, z, a, b, c, w = numbers
                numbers = (x, y, z, w, a, b, c)
            found[joint] = numbers
        if others:
            shown = ", ".join(f'"{joint}"' for joint in others[:3]) + (", …" if len(others) > 3 else "")
            report.note(
                f'pose "{name}" of {Path(srdf.file).name}: joints that do not move or do not fit: {shown}'
            )
        if found:
            yield name, found
