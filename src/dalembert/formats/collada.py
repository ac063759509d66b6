"""COLLADA (`.dae`): the triangles of a scene with the diffuse colours of their materials.

Read are geometries of triangles, polylists, polygons, fans and strips, placed by the nodes of the scene, in
metres (`<unit meter>`). Not read are skins, lines, splines, cameras, lights, animations and textures. Nothing
outside the file is opened.

`<up_axis>` does not turn the mesh: URDF says where the axes of a mesh stand, and RViz and Pinocchio take the
coordinates as they are. (Assimp turns the root node to Y_UP. RViz's `mesh_loader.cpp`, geometric_shapes'
`createMeshFromAsset`, gazebo and iDynTree, the reader of iCub's own files, take that out again.) Exporters
write Y_UP with any meaning: the trunk of Unitree's go1 lies flat only if it is left as it is, as the box
beside it in the same URDF file shows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.formats.document import Element, read_document
from dalembert.formats.resources import MAX_FILE_BYTES
from dalembert.formats.stl_obj import MAX_MESH_FACES
from dalembert.formats.triangle_mesh import Colour, Surface
from dalembert.spatial import Vec3
from dalembert.spatial.rotations import rotation_about

Array: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

MAX_NODE_DEPTH: Final = 100
"""Nodes inside one another, those of `<instance_node>` included; deeper scenes are rejected."""
MAX_NODES: Final = 20_000
"""Nodes that are placed; a node that others name counts each time, and names may double in every node."""
TEXT_BLOCK: Final = 1 << 20
"""Characters of numbers that are split into words at a time, which bounds the memory."""
_SPACE: Final = re.compile(r"\s")


@final
@dataclass
class _Parts:
    """The parts of a surface, and the number of the colour of each face, -1 for none."""

    vertices: list[Array] = field(default_factory=list)
    faces: list[Integers] = field(default_factory=list)
    colours: dict[Colour, int] = field(default_factory=dict)
    colour_of_face: list[Integers] = field(default_factory=list)
    vertex_count: int = 0
    face_count: int = 0


class Triangles(NamedTuple):
    """Triangles of one geometry as places in its vertices, and the symbol of their material."""

    vertices: Array
    faces: Integers
    symbol: str


def read_collada(content: bytes, file: Path) -> Surface:
    """Read the surface of the scene in a COLLADA file, in metres."""
    root = read_document(content, name=str(file), max_text=MAX_FILE_BYTES)
    root.require(
        root.tag == "COLLADA", f"the root element is <{root.tag[:40]}>; a COLLADA file has <COLLADA>"
    )
    with np.errstate(over="ignore", invalid="ignore"):  # whoever reads checks that all vertices are finite
        parts = _Scene(root).parts
    root.require(parts.faces, "the file has no faces")
    return Surface(
        np.concatenate(parts.vertices),
        np.concatenate(parts.faces),
        np.array(list(parts.colours), dtype=np.float64).reshape(-1, 4),
        np.concatenate(parts.colour_of_face),
    )


@final
class _Scene:
    """The elements of a file by their id, and the surface that its nodes put together."""

    def __init__(self, root: Element) -> None:
        self.root = root
        self.parts = _Parts()
        self.visits = 0
        self.read: dict[int, list[Triangles]] = {}
        self.ids: dict[str, Element] = {}
        for element in _each(root):
            if "id" in element.attributes:
                self.ids.setdefault(element.attributes["id"], element)
        scale = self._metres_per_unit()
        for node in self._top_nodes():
            self._add_node(node, np.diag([scale, scale, scale, 1.0]), MAX_NODE_DEPTH)
        if not self.parts.faces:  # a library without a scene
            for geometry in _of_tag(root, "library_geometries", "geometry"):
                self._add_geometry(geometry, np.diag([scale, scale, scale, 1.0]), {})

    def _metres_per_unit(self) -> float:
        asset = self.root.only("asset")
        unit = asset.only("unit") if asset is not None else None
        if unit is None or "meter" not in unit.attributes:
            return 1.0
        (scale,) = unit.numbers("meter", 1)
        unit.require(scale > 0.0, f"the unit is {scale} m; give a positive length")
        return scale

    def _top_nodes(self) -> list[Element]:
        scene = self.root.only("scene")
        named = scene.only("instance_visual_scene") if scene is not None else None
        if named is not None:
            return self._target(named, "url").all("node")
        scenes = _of_tag(self.root, "library_visual_scenes", "visual_scene")
        return scenes[0].all("node") if scenes else []

    def _target(self, element: Element, attribute: str) -> Element:
        """Return the element of this file that an attribute refers to, such as url="#hand"."""
        name = element.attribute(attribute).removeprefix("#")
        element.require(name in self.ids, f'{attribute} names "{name[:60]}", which is not in the file')
        return self.ids[name]

    def _add_node(self, node: Element, above: Array, depth: int) -> None:
        self.visits += 1
        node.require(depth > 0, f"nodes are nested deeper than {MAX_NODE_DEPTH}, or in a ring")
        node.require(self.visits <= MAX_NODES, f"there are more than {MAX_NODES} nodes")
        X = above @ _transform(node)
        for child in node.children:
            if child.tag == "node":
                self._add_node(child, X, depth - 1)
            elif child.tag == "instance_node":
                self._add_node(self._target(child, "url"), X, depth - 1)
            elif child.tag == "instance_geometry":
                self._add_geometry(self._target(child, "url"), X, self._bound_colours(child))

    def _add_geometry(self, geometry: Element, X: Array, colours: dict[str, Colour]) -> None:
        if id(geometry) not in self.read:
            self.read[id(geometry)] = list(self._triangles_of(geometry))
        parts = self.parts
        for vertices, faces, symbol in self.read[id(geometry)]:
            if not len(faces):
                continue
            parts.face_count += len(faces)
            fact = f"the scene has more than {MAX_MESH_FACES} triangles; up to these are read"
            geometry.require(parts.face_count <= MAX_MESH_FACES, fact)
            used, places = np.unique(faces, return_inverse=True)
            parts.vertices.append(vertices[used] @ X[:3, :3].T + X[:3, 3])
            placed = places.reshape(-1, 3) + parts.vertex_count
            parts.faces.append(placed[:, ::-1] if np.linalg.det(X[:3, :3]) < 0.0 else placed)
            parts.vertex_count += len(used)
            number = -1
            if symbol in colours:
                number = parts.colours.setdefault(colours[symbol], len(parts.colours))
            parts.colour_of_face.append(np.full(len(faces), number))

    # Materials

    def _bound_colours(self, instance: Element) -> dict[str, Colour]:
        """Return the colours of an instance of a geometry by the symbols of the materials."""
        found = {}
        for bound in _of_tag(instance, "bind_material", "technique_common", "instance_material"):
            material = self.ids.get(bound.attributes.get("target", "").removeprefix("#"))
            colour = self._colour_of(material) if material is not None else None
            if colour is not None:
                found[bound.attributes.get("symbol", "")] = colour
        return found

    def _colour_of(self, material: Element) -> Colour | None:
        """Return the diffuse colour of a material; None where it has a texture or none."""
        instance = material.only("instance_effect")
        effect = self.ids.get(instance.attributes.get("url", "").removeprefix("#")) if instance else None
        for technique in _of_tag(effect, "profile_COMMON", "technique") if effect else []:
            for shader in technique.children:
                for colour in _of_tag(shader, "diffuse", "color"):
                    values = _numbers(colour)
                    if len(values) in (3, 4) and np.isfinite(values).all():
                        red, green, blue = values[:3].clip(0.0, 1.0).tolist()
                        return red, green, blue, 1.0
        return None

    # Geometries

    def _triangles_of(self, geometry: Element) -> Iterator[Triangles]:
        mesh = geometry.only("mesh")
        for element in mesh.children if mesh is not None else []:
            if element.tag in _CUTS:
                inputs = element.all("input")
                offsets = [_index(item, "offset") for item in inputs]
                of_vertices = [k for k, item in enumerate(inputs) if item.attribute("semantic") == "VERTEX"]
                element.require(len(of_vertices) == 1, f"<{element.tag}> needs one <input> of VERTEX")
                k = of_vertices[0]
                vertices = self._positions(self._target(inputs[k], "source"))
                faces = _faces(element, max(offsets) + 1, offsets[k])
                if faces.size and not (faces.min() >= 0 and faces.max() < len(vertices)):
                    shown = f"{faces.min()} to {faces.max()}, and there are {len(vertices)}"
                    raise element.error(f"<{element.tag}> names vertices {shown}, from 0")
                yield Triangles(vertices, faces, element.attributes.get("material", ""))

    def _positions(self, vertices: Element) -> Array:
        """Return the coordinates (n, 3) that a <vertices> names."""
        inputs = [item for item in vertices.all("input") if item.attributes.get("semantic") == "POSITION"]
        vertices.require(len(inputs) == 1, f"<{vertices.tag}> needs one <input> of POSITION")
        source = self._target(inputs[0], "source")
        array = source.only("float_array")
        if array is None:
            raise source.error("the positions have no <float_array>")
        accessors = _of_tag(source, "technique_common", "accessor")
        stride = _index(accessors[0], "stride", 3) if accessors else 3
        start = _index(accessors[0], "offset") if accessors else 0
        source.require(3 <= stride <= MAX_STRIDE, f"the stride is {stride}; positions have three numbers")
        values = _numbers(array)[start:]
        return values[: len(values) // stride * stride].reshape(-1, stride)[:, :3]


MAX_STRIDE: Final = 64
"""Numbers of one vertex, or inputs of one corner of a polygon."""


def _faces(element: Element, inputs: int, offset: int) -> Integers:
    """Return the triangles (m, 3) of a primitive whose corners are given by `inputs` indices each."""
    element.require(inputs <= MAX_STRIDE, f"<{element.tag}> has {inputs} inputs; up to {MAX_STRIDE} are read")
    lists = [*element.all("p"), *(p for hole in element.all("ph") for p in hole.all("p"))]
    corners = []
    for p in lists:
        indices = _integers(p)
        p.require(len(indices) % inputs == 0, f"{len(indices)} indices are not a multiple of {inputs} inputs")
        corners.append(indices[offset::inputs])
    if element.tag == "triangles":
        cut = [corner[: len(corner) // 3 * 3].reshape(-1, 3) for corner in corners]
    elif element.tag == "polylist":
        counts = element.only("vcount")
        cut = [_fans(counts, _integers(counts), corner) for corner in corners if counts is not None]
    else:
        cut = [_CUTS[element.tag](corner) for corner in corners if len(corner) >= 3]
    return np.concatenate([np.zeros((0, 3), np.int64), *cut])


def _fans(element: Element, counts: Integers, corners: Integers) -> Integers:
    """Cut polygons with `counts` corners into triangles that share the first corner."""
    known = not len(counts) or (counts.min() >= 0 and counts.max() <= len(corners))
    element.require(
        known and counts.sum() == len(corners), f"the polygons do not have {len(corners)} corners"
    )
    triangles = np.maximum(counts - 2, 0)
    first = np.repeat(np.cumsum(counts) - counts, triangles)
    number = np.arange(len(first)) - np.repeat(np.cumsum(triangles) - triangles, triangles)
    found: Integers = corners[np.stack([first, first + number + 1, first + number + 2], axis=1)]
    return found


def _fan(corners: Integers) -> Integers:
    return np.stack([np.full(len(corners) - 2, corners[0]), corners[1:-1], corners[2:]], axis=1)


def _strip(corners: Integers) -> Integers:
    """Return the triangles of a strip, of which every second one is turned round."""
    found = np.stack([corners[:-2], corners[1:-1], corners[2:]], axis=1)
    found[1::2] = found[1::2, ::-1]
    return found


_CUTS: Final = {"triangles": _fan, "polylist": _fan, "polygons": _fan, "trifans": _fan, "tristrips": _strip}
"""The primitives that have faces, and how one list of corners of theirs is cut into triangles."""


# Nodes


def _transform(node: Element) -> Array:
    """Return the product (4, 4) of the transformations of a node, in the order of the file."""
    X = np.eye(4)
    for element in node.children:
        if element.tag in _TRANSFORMS:
            count, matrix = _TRANSFORMS[element.tag]
            values = _numbers(element)
            element.require(len(values) == count, f"<{element.tag}> has {len(values)} numbers; give {count}")
            element.require(np.isfinite(values).all(), f"<{element.tag}> holds a number that is not finite")
            X = X @ matrix(values)
        elif element.tag in ("skew", "lookat"):
            raise element.error(f"<{element.tag}> is not supported; export the node with a <matrix>")
    return X


def _translation(values: Array) -> Array:
    X = np.eye(4)
    X[:3, 3] = values
    return X


def _rotation(values: Array) -> Array:
    """Return the rotation about an axis by an angle in degrees."""
    length, X = float(np.linalg.norm(values[:3])), np.eye(4)
    if length > 0.0:
        axis = Vec3(*(values[:3] / length).tolist())
        X[:3, :3] = rotation_about(axis, math.radians(values[3])).to_list()
    return X


def _matrix(values: Array) -> Array:
    return values.reshape(4, 4)


def _scaling(values: Array) -> Array:
    return np.diag([*values.tolist(), 1.0])


_TRANSFORMS: Final = {
    "matrix": (16, _matrix),
    "translate": (3, _translation),
    "rotate": (4, _rotation),
    "scale": (3, _scaling),
}
"""The transformations of a node: how many numbers each has, and its matrix."""


# Elements and numbers


def _each(root: Element) -> Iterator[Element]:
    open_elements = [root]
    while open_elements:
        element = open_elements.pop()
        yield element
        open_elements.extend(reversed(element.children))


def _of_tag(element: Element, *tags: str) -> list[Element]:
    """Return the elements that a path of tags leads to."""
    found = [element]
    for tag in tags:
        found = [child for parent in found for child in parent.all(tag)]
    return found


def _index(element: Element, attribute: str, default: int = 0) -> int:
    if attribute not in element.attributes:
        return default
    (value,) = element.numbers(attribute, 1)
    element.require(0.0 <= value <= 2**31 and value == int(value), f"{attribute} is {value}; give a count")
    return int(value)


def _numbers(element: Element) -> Array:
    return np.concatenate([np.zeros(0), *_words(element, np.float64)])


def _integers(element: Element) -> Integers:
    return np.concatenate([np.zeros(0, np.int64), *_words(element, np.int64)])


def _words(element: Element, kind: type[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield the words of an element's text as numbers, in blocks."""
    text, start = element.text, 0
    while start < len(text):
        space = _SPACE.search(text, start + TEXT_BLOCK)
        end = space.start() if space else len(text)
        try:
            yield np.array(text[start:end].split(), dtype=kind)
        except (ValueError, OverflowError):
            what = "whole numbers" if kind is np.int64 else "numbers"
            raise element.error(f"<{element.tag}> holds something else than {what}") from None
        start = end
