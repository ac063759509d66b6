"""An MJCF model with everything that it names, read once: what is examined here is what MuJoCo compiles.

MuJoCo's compiler opens every file that a model names, and reads names, encodings and includes in its own
way. So it is given no file at all. Our bounded reader parses the model, puts the included files in their
places, resolves every name below the allowed folders, reads the files, and rejects what would make the
compiler allocate without bound. MuJoCo gets the text that is written from this tree, and the bytes that were
read, under names that are made from their digests. Nothing in that text names a file that is not among them.

Textures and skins draw and move nothing: textures are replaced by a single colour, and skins are left out.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple, final

from dalembert.errors import FileError
from dalembert.formats.document import MAX_DEPTH, MAX_ELEMENTS, Element, XmlText, read_document
from dalembert.formats.resources import Resources, read_regular_file

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
TEXTURE_FILES: Final = tuple(f"file{side}" for side in ("", "right", "left", "up", "down", "front", "back"))
KEPT_OF_TEXTURES: Final[tuple[str, ...]] = ("name", "class", "type")
FOLDERS: Final = ("assetdir", "meshdir", "texturedir", "strippath")
"""Attributes of `<compiler>` that say where files are; MuJoCo gets names that need none of them."""

UNSUPPORTED: Final = {
    "plugin": "plugins run code of their own",
    "extension": "plugins run code of their own",
    "flex": "flexible bodies are not rigid bodies",
    "flexcomp": "flexible bodies are not rigid bodies",
    "muscle": "muscles pull by their length and speed even when nothing is commanded",
}
"""Elements that change the dynamics in ways that a model here cannot hold, and why."""

OTHER_ROOTS: Final = {
    "robot": "this is URDF; give the file the ending .urdf",
    "sdf": "this is SDF, which is not read; convert it to URDF or MJCF",
    "COLLADA": "this is a mesh; name the model file",
    "mujocoinclude": "this is a part of a model, made to be included by another file; load that one",
}


def read_source(path: Path, roots: Sequence[Path], *, trusted: bool, balance: bool = False) -> Source:
    """Read a model with all that it includes, attaches and names; reject what must not reach the compiler.

    `balance` lets the compiler average moments of inertia that no body can have.
    """
    source = Source(path, roots, trusted=trusted, balance=balance)
    source.text = source.read_model(path, ())
    return source


@final
class Source:
    """A model for MuJoCo: its `text` and `assets`, the bytes of every file that the text names.

    `files` are the paths that the assets were read from; the `elements`, by kind and name, lend their lines
    to messages; `skins` are counted.
    """

    def __init__(self, path: Path, roots: Sequence[Path], *, trusted: bool, balance: bool) -> None:
        self.path = path
        self.text = MjcfText("", [])
        self.assets: dict[str, bytes] = {}
        self.files: dict[str, Path] = {}
        self.elements: dict[tuple[str, str], Element] = {}
        self.skins = 0
        self._roots = roots
        self._trusted = trusted
        self._balance = balance
        self._attached: dict[Path, tuple[str, int]] = {}
        self._contents: dict[Path, tuple[str, int]] = {}
        self._file_count = 0
        self._asset_bytes = 0

    def error(self, tags: str | Sequence[str], name: str, message: str) -> FileError:
        """Return an error about the element of one of these tags with that name, and its line if known."""
        for tag in [tags] if isinstance(tags, str) else tags:
            if (tag, name) in self.elements:
                return self.elements[tag, name].error(message)
        return FileError(f"{self.path}: {message}")

    def in_words_of_the_file(self, message: str) -> str:
        """Return a message of MuJoCo with the lines and the names of the user's files."""

        def place(match: re.Match[str]) -> str:
            number, lines = int(match[1]), self.text.lines
            if not 1 <= number <= len(lines):
                return match[0]
            return f"{lines[number - 1].file} line {lines[number - 1].line}"

        named = re.sub(r"\bline (\d+)", place, message)
        for asset, file in self.files.items():
            named = named.replace(asset, str(file))
        return named

    def read_model(self, path: Path, attached_by: tuple[Path, ...]) -> MjcfText:
        """Return the text of one model file with its includes, whose names are those of assets."""
        root = self._document(path)
        hint = OTHER_ROOTS.get(root.tag, "an MJCF file begins with <mujoco>")
        root.require(root.tag == "mujoco", f"the root element is <{root.tag}>: {hint}")
        resources = Resources(path.parent, self._roots, trusted=self._trusted)
        self._expand(root, path, resources)
        check_amounts(root)
        line = (*attached_by, path.resolve())
        folders = _asset_folders(root)
        waiting = [(root, 1, False)]
        while waiting:
            element, depth, in_default = waiting.pop()
            too_deep = f"is nested deeper than {MAX_DEPTH} elements; no model needs that"
            element.require(depth <= MAX_DEPTH, too_deep)  # by includes inside included files
            if name := element.attributes.get("name"):
                self.elements.setdefault((element.tag, name), element)
            if element.tag in UNSUPPORTED and not in_default:
                raise element.error(f"<{element.tag}> is not supported: {UNSUPPORTED[element.tag]}")
            self._name_assets(element, folders, resources, line, in_default=in_default)
            inside = in_default or element.tag == "default"
            waiting += [(child, depth + 1, inside) for child in reversed(element.children)]
            # A skin with a file is left out once its name is examined.
            kept = [c for c in element.children if c.tag != "skin" or "file" not in c.attributes]
            self.skins += len(element.children) - len(kept)
            element.children = kept
        if self._balance:  # of several <compiler> elements the last holds
            root.children.append(Element("compiler", {"balanceinertia": "true"}, root, file=root.file))
        return mjcf_text_of(root)

    def _document(self, path: Path) -> Element:
        self._count(1)
        return read_document(path, name=str(path))

    def _count(self, files: int) -> None:
        self._file_count += files
        if self._file_count > MAX_FILES:
            what = f"more than {MAX_FILES} models are included or attached; no model needs that"
            raise FileError(f"{self.path}: {what}")

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
                what = "an <include> has no elements inside; close it: <include file=…/>"
                child.require(not child.children, what)
                # It is named from the main file's folder, or from the includer's own.
                name = _posix_name(child.attributes.get("file", ""))
                near = Resources(Path(child.file).parent, (path.parent, *self._roots), trusted=self._trusted)
                try:
                    file = resources.resolve(name, what=child.place)
                except FileError as first:
                    try:
                        file = near.resolve(name, what=child.place)
                    except FileError:
                        raise first from None
                what = f"{file.name} is included twice, or includes itself; a file can be included once"
                child.require(file not in met, what)
                met.add(file)
                # They keep their parents, since messages say where an element is in its own file.
                pending += reversed(self._document(file).children)
            element.children = children
            waiting += children

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

        def resolve(attribute: str, folder: str) -> Path:
            name = _posix_name(given[attribute])
            if folders["strippath"] == "true":
                name = PurePosixPath(name).name
            # Schemes, home folders and absolute names are rejected as such, not below the folder of assets.
            plain = ":" not in name and not name.startswith(("/", "~"))
            joined = f"{folder.rstrip('/')}/{name}" if folder and plain else name
            return resources.resolve(joined, what=element.place)

        if element.tag == "texture":  # becomes a single colour once its names are examined
            for name in TEXTURE_FILES:
                if given.get(name):
                    resolve(name, folders["texturedir"])
            kept = {name: given[name] for name in KEPT_OF_TEXTURES if name in given}
            if not in_default:
                if given.get("file"):
                    kept.setdefault("name", _stem(given["file"]))
                kept |= {"builtin": "flat", "width": "1", "height": "1"}
            element.attributes = kept
        elif element.tag == "compiler":
            for name in FOLDERS:
                given.pop(name, None)
        elif "file" in given and element.tag == "model":
            given.pop("content_type", None)
            file = resources.resolve(_posix_name(given["file"]), what=element.place)
            given["file"] = self._attach_model(element, file, line)
        elif given.get("file") and element.tag in ("mesh", "hfield", "skin"):
            file = resolve("file", folders["meshdir"])
            given.setdefault("name", _stem(given["file"]))
            given["file"] = "" if element.tag == "skin" else self._asset(element, file)
        elif named := next((name for name in given if name.lower().startswith("file")), None):
            raise element.error(f"attribute {named[:40]!r}: <{element.tag[:40]}> names no file")

    def _asset(self, element: Element, file: Path) -> str:
        """Return the name of the asset that holds a file's bytes."""
        known = file in self._contents
        ending = "" if known else _ending(element, file)
        name, size = self._contents[file] if known else ("", file.stat().st_size)
        self._asset_bytes += size
        element.require(
            self._asset_bytes <= MAX_ASSET_BYTES,
            f"{file.name} has {size} bytes, and with it the meshes have {self._asset_bytes}; up to "
            f"{MAX_ASSET_BYTES} bytes are read for one model",
        )
        if not known:
            content = read_regular_file(file, limit=MAX_ASSET_BYTES)
            # Few bytes of a picture can hold thousands of megabytes.
            if element.tag == "hfield" and content.startswith(b"\x89PNG\r\n\x1a\n"):
                width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
                what = f"the picture has {width} x {height} samples; up to {MAX_SAMPLES} are read"
                element.require(width * height <= MAX_SAMPLES, what)
            name = self._keep("asset", ending, content, file)
            self._contents[file] = name, size
        return name

    def _keep(self, kind: str, ending: str, content: bytes, file: Path) -> str:
        """Add an asset and return its name, with the digest of its content: MuJoCo keeps decoded assets by
        name from one compilation to the next.
        """
        name = f"{kind}_{hashlib.sha256(content).hexdigest()[:32]}{ending}"
        self.assets[name] = content
        self.files.setdefault(name, file)
        return name

    def _attach_model(self, element: Element, file: Path, line: tuple[Path, ...]) -> str:
        """Return the name of the asset that holds the text of an attached model."""
        element.require(file not in line, f"{file.name} attaches itself, directly or through others")
        what = f"more than {MAX_ATTACHED_DEPTH} models attach one another in a row"
        element.require(len(line) <= MAX_ATTACHED_DEPTH, what)
        if file in self._attached:
            self._count(self._attached[file][1])
        else:
            before = self._file_count
            content = self.read_model(file, line).xml.encode()
            self._attached[file] = self._keep("model", ".xml", content, file), self._file_count - before
        return self._attached[file][0]


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
    what = f"content_type is {kind[:60]!r}; known: {', '.join(MESH_TYPES)}"
    element.require(not kind or kind in MESH_TYPES, what)
    ending = MESH_TYPES.get(kind, ending)
    what = f"{file.name} is not a mesh that MuJoCo reads; it reads {', '.join(MESH_ENDINGS)}"
    element.require(ending in MESH_ENDINGS, what)
    return ending


def _stem(name: str) -> str:
    """Return the name that MuJoCo gives to an asset without one: its file's, without folders and ending."""
    last = _posix_name(name).rpartition("/")[2]
    return last.rpartition(".")[0] or last


def _posix_name(name: str) -> str:
    """Return a name of a file with slashes: files written on Windows have backslashes, as MuJoCo knows."""
    return name.replace("\\", "/")


# The text of a model, written from the tree that was examined: one tag a line, elements only


@final
class MjcfText(NamedTuple):
    """The XML of a model, and the element on each of its lines."""

    xml: str
    lines: list[Element]


def mjcf_text_of(root: Element) -> MjcfText:
    """Write a tree; text, comments and processing instructions, which mean nothing in MJCF, are left out."""
    xml, elements = XmlText(indent=""), []
    waiting = [(root, False)]
    while waiting:
        element, written = waiting.pop()
        elements.append(element)
        if written:
            xml.close(element.tag)
        elif element.children:
            xml.open(element.tag, **element.attributes)
            waiting.append((element, True))
            waiting += [(child, False) for child in reversed(element.children)]
        else:
            xml.leaf(element.tag, **element.attributes)
    return MjcfText(xml.text(), elements)


# Numbers that would make MuJoCo's compiler allocate without bound

MAX_REPLICAS: Final = 10_000
"""Copies that nested `<replicate>` elements may make of one element, and parts of one `<composite>`."""
MAX_COPIED_ELEMENTS: Final = 500_000
"""Elements of a model after all copies are made, as many as one file may have."""
MAX_SAMPLES: Final = 16 * 1024 * 1024
"""Samples of the height fields and custom numbers of a model together: one field of 4096 x 4096."""
MAX_TEXELS: Final = 64 * 1024 * 1024
"""Samples of one generated texture."""
MAX_SIZE: Final = 100_000
"""Entries that `<size>` may reserve of each kind."""
MAX_SUBDIVISIONS: Final = 1_000
"""Greatest parameter of a generated mesh."""
UNUSED_SIZES: Final = ("memory", "nstack", "njmax", "nconmax", "nuserdata")
"""What `<size>` reserves for MuJoCo's own simulation, which is not run."""


def check_amounts(root: Element) -> None:
    """Reject elements that stand for more than a model needs, one by one and together."""
    samples = elements = 0.0
    waiting = [(root, 1.0)]
    while waiting:
        element, copies = waiting.pop()
        elements += copies
        if element.tag in ("hfield", "numeric"):
            samples += _product(element, *(("nrow", "ncol") if element.tag == "hfield" else ("size",)))
        if element.tag == "replicate":
            copies *= max(1.0, _numbers(element, "count", 1.0)[0])
            what = f"<replicate> makes {copies:g} copies; up to {MAX_REPLICAS} are made"
            element.require(copies <= MAX_REPLICAS, what)
        what = f"copies make more than {MAX_COPIED_ELEMENTS} elements; no model needs that"
        element.require(elements <= MAX_COPIED_ELEMENTS, what)
        what = f"<{element.tag}> makes {samples:g} samples; up to {MAX_SAMPLES} are made"
        element.require(samples <= MAX_SAMPLES, what)
        _check_sizes(element)
        waiting += [(child, copies) for child in reversed(element.children)]


def _check_sizes(element: Element) -> None:
    if element.tag == "size":
        for name in UNUSED_SIZES:
            element.attributes.pop(name, None)
        for name, value in element.attributes.items():
            what = f"{name} is {value[:40]}; up to {MAX_SIZE} entries are reserved"
            element.require(max(_numbers(element, name, 0.0)) <= MAX_SIZE, what)
    elif element.tag == "texture":
        texels = _product(element, "width", "height")
        what = f"<texture> has {texels:g} samples; up to {MAX_TEXELS} are made"
        element.require(texels <= MAX_TEXELS, what)
    elif element.tag == "composite":
        parts = math.prod(max(1.0, number) for number in _numbers(element, "count", 1.0))
        what = f"<composite> makes {parts:g} parts; up to {MAX_REPLICAS} are made"
        element.require(parts <= MAX_REPLICAS, what)
    elif element.tag == "mesh":
        what = f"a parameter of a generated mesh exceeds {MAX_SUBDIVISIONS}"
        element.require(max(_numbers(element, "params", 0.0)) <= MAX_SUBDIVISIONS, what)


def _product(element: Element, *names: str) -> float:
    return math.prod(max(1.0, _numbers(element, name, 1.0)[0]) for name in names)


def _numbers(element: Element, name: str, default: float) -> list[float]:
    try:
        found = [float(word) for word in element.attributes.get(name, "").split()]
    except ValueError:  # the compiler says more about it
        return [default]
    return found or [default]
