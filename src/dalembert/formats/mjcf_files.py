"""An MJCF model with everything that it names, read once: what is examined here is what MuJoCo compiles.

MuJoCo's compiler opens every file that a model names, and reads names, encodings and includes in its own
way. So it is given no file at all. Our bounded reader parses the model, puts the included files in their
places, resolves every name below the allowed folders, reads the files, and refuses what would make the
compiler allocate without bound. MuJoCo gets the text that is written from this tree, and the bytes that were
read, under names that are made from their digests. Nothing in that text names a file that is not among them.

Textures and skins draw and move nothing: textures are replaced by a single colour, and skins are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, final

from dalembert.errors import FileError
from dalembert.formats.document import MAX_DEPTH, MAX_ELEMENTS, Element, read_document
from dalembert.formats.mjcf_limits import check_amounts, check_height_field
from dalembert.formats.mjcf_text import Text, mjcf_text_of
from dalembert.formats.resources import Resources, read_regular_file

__all__ = ["MAX_ASSET_BYTES", "MAX_ATTACHED_DEPTH", "MAX_FILES", "Source", "read_source"]

MAX_FILES: Final = 500
"""Model files that one model may include or attach."""

MAX_ATTACHED_DEPTH: Final = 16
"""Models that attach one another in a row; each takes a level of recursion here and in MuJoCo."""

MAX_ASSET_BYTES: Final = 512 * 1024 * 1024
"""Bytes of all meshes and height fields of a model together; one that is named twice counts twice, since
MuJoCo decodes it twice. The largest robots of MuJoCo Menagerie have about 100 MB.
"""

MESH_ENDINGS: Final = (".stl", ".obj", ".msh")
"""The mesh formats that MuJoCo decodes. Its decoder of archives (.mjz, .zip) is never reached."""
MESH_TYPES: Final = {"model/stl": ".stl", "model/obj": ".obj", "model/vnd.mujoco.msh": ".msh"}
PICTURE_TYPE: Final = "image/png"

TEXTURE_FILES: Final[tuple[str, ...]] = (
    "file",
    "fileright",
    "fileleft",
    "fileup",
    "filedown",
    "filefront",
    "fileback",
)
KEPT_OF_TEXTURES: Final[tuple[str, ...]] = ("name", "class", "type")
FOLDERS: Final = ("assetdir", "meshdir", "texturedir", "strippath")
"""Attributes of `<compiler>` that say where files are; MuJoCo gets names that need none of them."""

REFUSED: Final = {
    "plugin": "plugins run code of their own",
    "extension": "plugins run code of their own",
    "flex": "flexible bodies are not rigid bodies",
    "flexcomp": "flexible bodies are not rigid bodies",
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
@dataclass(eq=False)
class Source:
    """A model for MuJoCo: its `text` and `assets`, the bytes of every file that the text names.

    `files` are the paths that the assets were read from; the elements, found by kind and name, lend their
    lines to messages.
    """

    path: Path
    text: Text = field(default_factory=lambda: Text("", []))
    assets: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    skins: int = 0
    elements: dict[tuple[str, str], Element] = field(default_factory=dict)

    def error(self, tags: str | Sequence[str], name: str, message: str) -> FileError:
        """Return an error about the element of one of these tags with that name, with its line where it is
        known.
        """
        for tag in [tags] if isinstance(tags, str) else tags:
            if (tag, name) in self.elements:
                return self.elements[tag, name].error(message)
        return FileError(f"{self.path}: {message}")

    def in_words_of_the_file(self, message: str) -> str:
        """Return a message of MuJoCo with the lines and the names of the user's files."""
        named = self.text.with_places(message)
        for asset, file in self.files.items():
            named = named.replace(asset, str(file))
        return named


def read_source(path: Path, roots: Sequence[Path], *, trusted: bool, balance: bool = False) -> Source:
    """Read a model with all that it includes, attaches and names; refuse what must not reach the compiler.

    `balance` lets the compiler average moments of inertia that no body can have.
    """
    source = Source(path)
    source.text = _Collector(source, roots, trusted=trusted, balance=balance).model(path, ())
    return source


class _Collector:
    """The reader of the files of one model into its source; it counts them."""

    def __init__(self, source: Source, roots: Sequence[Path], *, trusted: bool, balance: bool) -> None:
        self.source = source
        self.balance = balance
        self.roots = roots
        self.trusted = trusted
        self.attached: dict[Path, tuple[str, int]] = {}
        self.contents: dict[Path, tuple[str, int]] = {}
        self.count = 0
        self.asset_bytes = 0

    def model(self, path: Path, attached_by: tuple[Path, ...]) -> Text:
        """Return the text of one model file with its includes, whose names are those of assets."""
        root = self._document(path)
        if root.tag != "mujoco":
            hint = ROOTS.get(root.tag, "an MJCF file begins with <mujoco>")
            raise root.error(f"the root element is <{root.tag}>: {hint}")
        resources = Resources(path.parent, self.roots, trusted=self.trusted)
        self._expand(root, path, resources)
        check_amounts(root)
        line = (*attached_by, path.resolve())
        folders = _asset_folders(root)
        waiting = [(root, 1, False)]
        while waiting:
            element, depth, in_default = waiting.pop()
            if depth > MAX_DEPTH:  # by includes inside included files
                raise element.error(f"is nested deeper than {MAX_DEPTH} elements; no model needs that")
            if name := element.attributes.get("name"):
                self.source.elements.setdefault((element.tag, name), element)
            if element.tag in REFUSED and not in_default:
                raise element.error(f"<{element.tag}> is not supported: {REFUSED[element.tag]}")
            self._name_assets(element, folders, resources, line, in_default=in_default)
            # A skin with a file is left out once its name is examined.
            self.source.skins += sum(1 for child in element.children if _is_skin_file(child))
            inside = in_default or element.tag == "default"
            waiting += [(child, depth + 1, inside) for child in reversed(element.children)]
            element.children = [child for child in element.children if not _is_skin_file(child)]
        if self.balance:  # of several <compiler> elements the last holds
            root.children.append(Element("compiler", {"balanceinertia": "true"}, root, file=root.file))
        return mjcf_text_of(root)

    def _document(self, path: Path) -> Element:
        self._count(1)
        return read_document(path, name=str(path))

    def _count(self, files: int) -> None:
        self.count += files
        if self.count > MAX_FILES:
            raise FileError(
                f"{self.source.path}: more than {MAX_FILES} models are included or attached; no model needs "
                "that"
            )

    def _expand(self, root: Element, path: Path, resources: Resources) -> None:
        """Put the content of included files in the places of the `<include>` elements."""
        met = {path.resolve()}
        waiting, total = [root], 0
        while waiting:
            element = waiting.pop()
            pending, children = element.children[::-1], []
            while pending:
                child = pending.pop()
                total += 1
                if total > MAX_ELEMENTS:
                    raise FileError(
                        f"{path}: there are more than {MAX_ELEMENTS} elements; no model needs that"
                    )
                if child.tag.lower() != "include":  # MuJoCo includes in any case of letters
                    children.append(child)
                    continue
                if child.children:
                    raise child.error("an <include> has no elements inside; close it: <include file=…/>")
                file = self._resolve_include(child, path, resources)
                if file in met:
                    raise child.error(
                        f"{file.name} is included twice, or includes itself; a file can be included once"
                    )
                met.add(file)
                # They keep their parents, since messages say where an element is in its own file.
                pending += reversed(self._document(file).children)
            element.children = children
            waiting += children

    def _resolve_include(self, element: Element, path: Path, resources: Resources) -> Path:
        """Return the file of an `<include>`, whose name starts at the main file's folder or the includer's
        own.
        """
        name = _posix_name(element.attributes.get("file", ""))
        near = Resources(Path(element.file).parent, (path.parent, *self.roots), trusted=self.trusted)
        try:
            return resources.resolve(name, what=element.place)
        except FileError as refusal:
            try:
                return near.resolve(name, what=element.place)
            except FileError:
                raise refusal from None

    def _name_assets(
        self,
        element: Element,
        folders: dict[str, str],
        resources: Resources,
        line: tuple[Path, ...],
        *,
        in_default: bool,
    ) -> None:
        """Read the files that an element names, and give the element the names of the assets."""
        given = element.attributes
        if element.tag == "texture":
            self._drop_picture(element, folders, resources, in_default=in_default)
        elif element.tag == "compiler":
            for name in FOLDERS:
                given.pop(name, None)
        elif "file" in given and element.tag == "model":
            given.pop("content_type", None)
            file = resources.resolve(_posix_name(given["file"]), what=element.place)
            given["file"] = self._attach_model(element, file, line)
        elif given.get("file") and element.tag in ("mesh", "hfield", "skin"):
            file = self._resolve(element, "file", folders["meshdir"], folders, resources)
            given.setdefault("name", _stem(given["file"]))
            given["file"] = "" if element.tag == "skin" else self._asset(element, file)
        elif named := next((name for name in given if name.lower().startswith("file")), None):
            raise element.error(f"attribute {named[:40]!r}: <{element.tag[:40]}> names no file")

    def _resolve(
        self, element: Element, attribute: str, folder: str, folders: dict[str, str], resources: Resources
    ) -> Path:
        """Return the file of an asset, which lies below an allowed folder and exists."""
        name = _posix_name(element.attributes[attribute])
        if folders["strippath"] == "true":
            name = PurePosixPath(name).name
        # Schemes, home folders and absolute names are refused as they are, not below the folder of assets.
        plain = ":" not in name and not name.startswith(("/", "~"))
        joined = f"{folder.rstrip('/')}/{name}" if folder and plain else name
        return resources.resolve(joined, what=element.place)

    def _asset(self, element: Element, file: Path) -> str:
        """Return the name of the asset that holds a file's bytes."""
        if file in self.contents:
            name, size = self.contents[file]
            self._take(element, file, size)
            return name
        ending = _ending(element, file)
        size = file.stat().st_size
        self._take(element, file, size)
        content = read_regular_file(file, limit=MAX_ASSET_BYTES)
        if element.tag == "hfield":
            check_height_field(element, content)
        # The digest in the name: MuJoCo keeps decoded assets by name from one compilation to the next.
        name = f"asset_{hashlib.sha256(content).hexdigest()[:32]}{ending}"
        self.contents[file] = name, size
        self.source.assets[name] = content
        self.source.files.setdefault(name, file)
        return name

    def _take(self, element: Element, file: Path, size: int) -> None:
        self.asset_bytes += size
        if self.asset_bytes > MAX_ASSET_BYTES:
            raise element.error(
                f"{file.name} has {size} bytes, and with it the meshes have {self.asset_bytes}; up to "
                f"{MAX_ASSET_BYTES} bytes are read for one model"
            )

    def _attach_model(self, element: Element, file: Path, line: tuple[Path, ...]) -> str:
        """Return the name of the asset that holds the text of an attached model."""
        if file in line:
            raise element.error(f"{file.name} attaches itself, directly or through others")
        if len(line) > MAX_ATTACHED_DEPTH:
            raise element.error(f"more than {MAX_ATTACHED_DEPTH} models attach one another in a row")
        if file in self.attached:
            self._count(self.attached[file][1])
        else:
            before = self.count
            content = self.model(file, line).xml.encode()
            name = f"model_{hashlib.sha256(content).hexdigest()[:32]}.xml"
            self.source.assets[name] = content
            self.source.files.setdefault(name, file)
            self.attached[file] = name, self.count - before
        return self.attached[file][0]

    def _drop_picture(
        self, element: Element, folders: dict[str, str], resources: Resources, *, in_default: bool
    ) -> None:
        """Make a texture a single colour; names that lead out of the allowed folders are refused still."""
        given = element.attributes
        named = [name for name in TEXTURE_FILES if given.get(name)]
        for name in named:
            self._resolve(element, name, folders["texturedir"], folders, resources)
        kept = {name: given[name] for name in KEPT_OF_TEXTURES if name in given}
        if not in_default:
            if given.get("file"):
                kept.setdefault("name", _stem(given["file"]))
            kept |= {"builtin": "flat", "width": "1", "height": "1"}
        element.attributes = kept


def _asset_folders(root: Element) -> dict[str, str]:
    """Return the folders of meshes and textures, and strippath; the last `<compiler>` that says one holds."""
    found = dict.fromkeys(("meshdir", "texturedir", "strippath"), "")
    for compiler in root.all("compiler"):
        given = compiler.attributes
        if "assetdir" in given:
            found["meshdir"] = found["texturedir"] = _posix_name(given["assetdir"])
        for name in found:
            if name in given:
                found[name] = _posix_name(given[name])
    return found


def _ending(element: Element, file: Path) -> str:
    """Return the ending by which MuJoCo chooses the decoder of an asset."""
    ending, kind = file.suffix.lower(), element.attributes.pop("content_type", "")
    if element.tag == "hfield":
        return ".png" if kind == PICTURE_TYPE or (not kind and ending == ".png") else ".bin"
    if kind and kind not in MESH_TYPES:
        raise element.error(f"content_type is {kind[:60]!r}; known: {', '.join(MESH_TYPES)}")
    ending = MESH_TYPES.get(kind, ending)
    if ending not in MESH_ENDINGS:
        raise element.error(
            f"{file.name} is not a mesh that MuJoCo reads; it reads {', '.join(MESH_ENDINGS)}"
        )
    return ending


def _stem(name: str) -> str:
    """Return the name that MuJoCo gives to an asset without one: its file's, without folders and ending."""
    last = _posix_name(name).rpartition("/")[2]
    return last.rpartition(".")[0] or last


def _posix_name(name: str) -> str:
    """Return a name of a file with slashes: files written on Windows have backslashes, as MuJoCo knows."""
    return name.replace("\\", "/")


def _is_skin_file(element: Element) -> bool:
    return element.tag == "skin" and "file" in element.attributes
