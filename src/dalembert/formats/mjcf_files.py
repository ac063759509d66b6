"""What an MJCF file names, looked at before MuJoCo opens it.

MuJoCo's compiler opens every file that a model names. So the model and all that it includes are first read by
our bounded reader, every name has to lead to a regular file below an allowed folder, and what would make the
compiler allocate without bound is refused. The elements met on the way lend their lines to later messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Final, final

from dalembert.errors import FileError
from dalembert.formats.document import MAX_FILE_BYTES, Element, read_document
from dalembert.formats.resources import MissingResourceError, Resources

__all__ = ["MAX_FILES", "MAX_REPLICAS", "MAX_SAMPLES", "Source", "examine"]

MAX_FILES: Final = 500
"""Model files that one model may include or attach."""

MAX_REPLICAS: Final = 10_000
"""Copies that nested `<replicate>` elements may make of one element."""

MAX_SAMPLES: Final = 64 * 1024 * 1024
"""Samples of one generated texture or height field."""

MESH_TAGS: Final = frozenset({"mesh", "hfield", "skin", "flexcomp"})
TEXTURE_FILES: Final[tuple[str, ...]] = (
    "file",
    "fileright",
    "fileleft",
    "fileup",
    "filedown",
    "filefront",
    "fileback",
)

REFUSED: Final = {
    "plugin": "plugins run code of their own",
    "extension": "plugins run code of their own",
    "flex": "flexible bodies are no rigid bodies",
    "flexcomp": "flexible bodies are no rigid bodies",
    "muscle": "muscles pull by their length and speed even when nothing is commanded",
}
"""Elements that change the dynamics in ways that a model here cannot hold, and why."""

ROOTS: Final = {
    "robot": "this is URDF; give the file the ending .urdf",
    "sdf": "this is SDF, which is not read; convert it to URDF or MJCF",
    "COLLADA": "this is a mesh; name the model file",
    "mujocoinclude": "this is a part of a model, made to be included by another file; load that one",
}


@final
class Source:
    """The elements of a model's files, found by kind and name for messages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._elements: dict[tuple[str, str], Element] = {}

    def keep(self, element: Element) -> None:
        """Remember a named element."""
        name = element.attributes.get("name")
        if name:
            self._elements.setdefault((element.tag, name), element)

    def error(self, tags: str | Sequence[str], name: str, message: str) -> FileError:
        """An error about the element of one of these tags with that name, with its line where it is known."""
        for tag in [tags] if isinstance(tags, str) else tags:
            if (tag, name) in self._elements:
                return self._elements[tag, name].error(message)
        return FileError(f"{self.path}: {message}")


def examine(path: Path, roots: Sequence[Path], *, trusted: bool) -> Source:
    """Read a model with all that it includes or attaches; refuse what must not reach the compiler."""
    source = Source(path)
    waiting: list[tuple[Path, tuple[Path, ...], Element | None]] = [(path, (), None)]
    count = 0
    while waiting:
        main, attached_by, wanted_by = waiting.pop()
        count += 1
        if count > MAX_FILES:
            raise FileError(f"{path}: more than {MAX_FILES} models are attached; no model needs that")
        line = (*attached_by, main.resolve())
        if wanted_by is not None and main.resolve() in attached_by:
            raise wanted_by.error(f"{main.name} attaches itself, directly or through others")
        documents = _with_includes(main, roots, trusted=trusted)
        resources = Resources(main.parent, roots, trusted=trusted)
        for element in (item for document in documents for item in document.walk()):
            source.keep(element)
            _refuse(element)
            if element.tag == "model" and element.attributes.get("file"):
                found = resources.resolve(element.attributes["file"], what=element.place)
                waiting.append((found, line, element))
        _check_assets(documents, resources)
    return source


def _with_includes(path: Path, roots: Sequence[Path], *, trusted: bool) -> list[Element]:
    """The documents of a model file and of all that it includes."""
    resources = Resources(path.parent, roots, trusted=trusted)
    met: set[Path] = set()
    documents: list[Element] = []
    waiting: list[tuple[Path, Element | None]] = [(path, None)]
    while waiting:
        file, wanted_by = waiting.pop()
        if file.resolve() in met and wanted_by is not None:
            raise wanted_by.error(
                f"{file.name} is included twice, or includes itself; a file can be included once"
            )
        met.add(file.resolve())
        if len(met) > MAX_FILES:
            raise FileError(f"{path}: more than {MAX_FILES} files are included; no model needs that")
        document = read_document(file, name=str(file))
        if wanted_by is None:
            _check_root(document)
        documents.append(document)
        near = Resources(file.parent, (path.parent, *roots), trusted=trusted)
        for element in document.walk():
            if element.tag == "include":
                waiting.append((_included(element, resources, near), element))
    return documents


def _check_root(document: Element) -> None:
    if document.tag != "mujoco":
        hint = ROOTS.get(document.tag, "an MJCF file begins with <mujoco>")
        raise document.error(f"the root element is <{document.tag}>: {hint}")


def _included(element: Element, resources: Resources, near: Resources) -> Path:
    """The file of an `<include>`, whose name starts at the main file's folder or the includer's own."""
    name = element.attributes.get("file", "")
    try:
        return resources.resolve(name, what=element.place)
    except FileError as refusal:
        try:
            return near.resolve(name, what=element.place)
        except FileError:
            raise refusal from None


def _ancestors(element: Element) -> Sequence[Element]:
    found: list[Element] = []
    at = element.parent
    while at is not None:
        found.append(at)
        at = at.parent
    return found


def _refuse(element: Element) -> None:
    """Elements that cannot be kept, and numbers that would make the compiler allocate without bound."""
    above = _ancestors(element)
    if element.tag in REFUSED and not any(a.tag == "default" for a in above):
        raise element.error(f"<{element.tag}> is not supported: {REFUSED[element.tag]}")
    if element.tag == "replicate":
        copies = 1.0
        for item in (element, *(a for a in above if a.tag == "replicate")):
            copies *= max(1.0, _number(item, "count", 1.0))
        if copies > MAX_REPLICAS:
            raise element.error(f"<replicate> makes {copies:g} copies; up to {MAX_REPLICAS} are made")
    sizes = {"texture": ("width", "height"), "hfield": ("nrow", "ncol"), "numeric": ("size",)}
    samples = 1.0
    for name in sizes.get(element.tag, ()):
        samples *= max(1.0, _number(element, name, 1.0))
    if samples > MAX_SAMPLES:
        raise element.error(f"<{element.tag}> has {samples:g} samples; up to {MAX_SAMPLES} are made")


def _number(element: Element, name: str, default: float) -> float:
    try:
        return float(element.attributes.get(name, default))
    except ValueError:  # the compiler says more about it
        return default


def _check_assets(documents: Sequence[Element], resources: Resources) -> None:
    """Every mesh, height field, skin and texture file, wherever the compiler may look for it.

    Where files that are included have a `<compiler>` too, the last one in the order of the expanded text
    holds. All that occur are checked, so that no order leads out of the allowed folders.
    """
    compilers = [item for document in documents for item in document.walk() if item.tag == "compiler"]
    meshes, textures = _folders(compilers, "meshdir"), _folders(compilers, "texturedir")
    strips = {c.attributes["strippath"] == "true" for c in compilers if "strippath" in c.attributes}
    for document in documents:
        for element in document.walk():
            if element.tag in MESH_TAGS:
                folders, names = meshes, TEXTURE_FILES[:1]
            elif element.tag == "texture":
                folders, names = textures, TEXTURE_FILES
            else:
                continue
            for name in names:
                if value := element.attributes.get(name):
                    _check_asset(element, value, folders, resources, strips or {False})


def _folders(compilers: Sequence[Element], kind: str) -> list[str]:
    """Every folder of such assets that is named; the model file's own if none is."""
    named = [item.attributes.get(kind, item.attributes.get("assetdir")) for item in compilers]
    return [folder for folder in dict.fromkeys(named) if folder is not None] or [""]


def _check_asset(
    element: Element, name: str, folders: Sequence[str], resources: Resources, strips: set[bool]
) -> None:
    """Refuse a file that leads out in any way of reading its name, or that is nowhere."""
    missing: MissingResourceError | None = None
    found = False
    for strip, folder in product(strips, folders):
        own = PurePosixPath(name.replace("\\", "/")).name if strip else name
        # Schemes, home folders and absolute names are refused as they stand, not below the folder of assets.
        plain = ":" not in own and not own.startswith(("/", "~", "\\"))
        try:
            file = resources.resolve(
                f"{folder.rstrip('/')}/{own}" if folder and plain else own, what=element.place
            )
        except MissingResourceError as error:
            missing = missing or error
            continue
        found = True
        if file.stat().st_size > MAX_FILE_BYTES:
            raise element.error(
                f"{own} has {file.stat().st_size} bytes; files up to {MAX_FILE_BYTES} are read"
            )
    if missing is not None and not found:
        raise missing
