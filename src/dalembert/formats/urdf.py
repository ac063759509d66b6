"""URDF files as models, on our own reader.

A link becomes a body; links on fixed joints are merged into the body that carries them, their frames kept
under their names. A link's frame is its joint's successor frame, as in ours. The root link is the world
itself, or a free body with `root="floating"`. Gravity is (0, 0, -9.81): URDF has none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dalembert.errors import FileError, InertiaError, ModelError, UnknownNameError
from dalembert.formats.document import Element, read_document
from dalembert.formats.report import Report
from dalembert.formats.resources import MissingResourceError, Resources
from dalembert.formats.urdf_assembly import INERTIA_OPTIONS, ROOT_OPTIONS, Assembly, InertiaOption, RootOption
from dalembert.formats.urdf_elements import MeshPath, read_joint, read_link, read_materials
from dalembert.formats.urdf_sizes import report_sizes
from dalembert.formats.urdf_tree import check_mimics, refuse_duplicates, tree_order
from dalembert.formats.urdf_vocabulary import check_words
from dalembert.model import Model

__all__ = ["load_urdf"]

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
) -> Model:
    """Load the model in a URDF file's content; `name` is the file's name in messages, `folder` holds its
    meshes.

    `root`: "floating" gives the root link six freedoms; "fixed" and None join it to the world. `inertia`:
    what to do with inertias that no body can have, once fixed links are merged: use them "as_given" and
    report, refuse them ("strict"), or "repair" them to the nearest possible ones. Meshes are looked for
    below the folder and `roots`, and not read.
    """
    if root not in ROOT_OPTIONS:
        raise UnknownNameError.of("root", root, ROOT_OPTIONS)
    if inertia not in INERTIA_OPTIONS:
        raise UnknownNameError.of("inertia option", inertia, INERTIA_OPTIONS)
    report = Report()
    robot = _robot(read_document(content, name=name))
    check_words(robot, report)
    refuse_duplicates(robot.all("link"))
    refuse_duplicates(robot.all("joint"))
    missing: list[str] = []
    mesh_path = _mesh_finder(None if folder is None else Resources(folder, roots, trusted=trusted), missing)
    materials = read_materials(robot)
    links = {
        link.name: link
        for link in (read_link(element, materials, mesh_path, report) for element in robot.all("link"))
    }
    if missing:
        more = f" ({len(missing)} meshes like this)" if len(missing) > 1 else ""
        report.warn(f"{missing[0]}{more}")
    joints = [read_joint(element, report) for element in robot.all("joint")]
    base, order = tree_order(robot, links, joints)
    check_mimics(joints)
    report_sizes(links, order, report)
    try:
        return Assembly(robot, links, report).model(base, order, root, inertia)
    except (FileError, InertiaError):
        raise
    except ModelError as error:  # numbers that are finite one by one, but not together
        raise robot.error(str(error)) from error


def _robot(document: Element) -> Element:
    if document.tag in _OTHER_ROOTS:
        raise document.error(_OTHER_ROOTS[document.tag])
    if document.tag != "robot":
        raise document.error(f"the root element is <{document.tag[:40]}>; a URDF file has <robot>")
    return document


def _mesh_finder(resources: Resources | None, missing: list[str]) -> MeshPath:
    """Return the function that turns the name of a mesh into (path, True), or into (name, False) if the file
    cannot be read.

    Names of forbidden places are refused at once. A name that merely climbs out of the folder, as
    `../meshes/hand.stl` does, is common and harmless since the mesh is never read: it is `missing`, like a
    file that is not there.
    """
    known: dict[str, tuple[str, bool]] = {}

    def path(element: Element, filename: str) -> tuple[str, bool]:
        if filename in known or resources is None:
            return known.get(filename, (filename, False))
        uri = _TOO_MANY_SLASHES.sub("package://", filename)
        try:
            known[filename] = str(resources.resolve(uri, what="mesh")), True
        except MissingResourceError as error:
            known[filename] = filename, False
            missing.append(f"{element.place}: {error}")
        except FileError as error:
            climbs = (
                ".." in filename.split("/") and not filename.startswith(("/", "~")) and ":" not in filename
            )
            if not climbs:
                raise element.error(str(error)) from None
            known[filename] = filename, False
            missing.append(f"{element.place}: {error}")
        return known[filename]

    return path
