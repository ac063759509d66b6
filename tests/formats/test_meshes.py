"""Meshes from files, and the inertia of the solids they bound against closed forms."""

from __future__ import annotations

import re
import struct
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from dalembert.errors import ArgumentError, FileError, ModelError, UnknownNameError
from dalembert.formats import meshes, stl_obj
from dalembert.formats.meshes import TriangleMesh, read_mesh
from dalembert.model.shapes import Box, Sphere
from dalembert.model.shapes import convex_hull as volumes
from dalembert.spatial import Transform

Array = npt.NDArray[np.float64]

BOX_QUADS = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]


def box(size: Sequence[float], centre: Sequence[float] = (0.0, 0.0, 0.0)) -> TriangleMesh:
    """Corner number = 4 z + 2 y + x; faces look outward."""
    signs = np.array([[x, y, z] for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)], dtype=float)
    faces = [triangle for a, b, c, d in BOX_QUADS for triangle in ((a, b, c), (a, c, d))]
    return TriangleMesh(signs * np.asarray(size) / 2.0 + np.asarray(centre), np.array(faces))


def sphere(radius: float, rings: int) -> TriangleMesh:
    """A globe of meridians and parallels."""
    polar, around = np.linspace(0.0, np.pi, rings + 1), np.linspace(0.0, 2.0 * np.pi, 2 * rings + 1)[:-1]
    points = [[np.sin(p) * np.cos(a), np.sin(p) * np.sin(a), np.cos(p)] for p in polar for a in around]
    n = len(around)
    faces = []
    for i in range(rings):
        for k in range(n):
            a, b, c, d = i * n + k, i * n + (k + 1) % n, (i + 1) * n + k, (i + 1) * n + (k + 1) % n
            faces += [(a, c, d), (a, d, b)]
    return TriangleMesh(radius * np.array(points), np.array(faces))


def numbers(inertia: object) -> Array:
    return np.array([float(x) for x in inertia.leaves()])  # type: ignore[attr-defined]


def binary_stl(mesh: TriangleMesh, header: bytes = b"", count: int | None = None) -> bytes:
    faces = mesh.vertices[mesh.faces].astype("<f4")
    body = b"".join(bytes(12) + face.tobytes() + bytes(2) for face in faces)
    return header.ljust(80, b"\0") + struct.pack("<I", len(faces) if count is None else count) + body


def text_stl(mesh: TriangleMesh) -> str:
    lines = ["solid part"]
    for face in mesh.vertices[mesh.faces]:
        lines += [" facet normal 0 0 0", "  outer loop"]
        lines += [f"   vertex {x!r} {y!r} {z!r}" for x, y, z in face.tolist()]
        lines += ["  endloop", " endfacet"]
    return "\n".join([*lines, "endsolid part", ""])


# inertia


def test_a_box_has_the_inertia_of_a_box_wherever_it_stands() -> None:
    size, centre = (0.3, 0.7, 1.1), (5.0, -3.0, 2.0)
    place = Transform.from_rotation_translation(np.eye(3), centre)
    expected = Box(size=size, placement=place).inertia(density=800.0)
    mesh = box(size, centre)
    assert mesh.volume == pytest.approx(0.3 * 0.7 * 1.1, rel=1e-13)
    np.testing.assert_allclose(
        numbers(mesh.inertia(density=800.0)), numbers(expected), rtol=1e-12, atol=1e-12
    )
    by_mass = mesh.inertia(mass=float(expected.mass))
    np.testing.assert_allclose(numbers(by_mass), numbers(expected), rtol=1e-12, atol=1e-12)


def test_a_tetrahedron_has_the_moments_of_the_closed_form() -> None:
    """For corners at the origin and at 1 on each axis, V = 1/6, c = 1/4 and the integrals of x x and x y
    are 1/60 and 1/120; an affine map A x + t carries them to A J A^T.
    """
    rng = np.random.default_rng(3)
    A, t = rng.normal(size=(3, 3)), rng.normal(size=3)
    corners = np.vstack([np.zeros(3), np.eye(3)]) @ A.T + t
    mesh = TriangleMesh(corners, np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]))
    volume = abs(np.linalg.det(A)) / 6.0
    about_com = (np.full((3, 3), 1 / 120) + np.eye(3) / 120) * 6.0 - np.full((3, 3), 1 / 16)
    J = 5.0 * A @ about_com @ A.T
    inertia = mesh.inertia(mass=5.0)
    assert mesh.volume == pytest.approx(volume, rel=1e-12)
    np.testing.assert_allclose(list(inertia.com), corners.mean(axis=0), rtol=1e-12)
    I = np.array(inertia.inertia_at_com.to_list(), dtype=float)
    np.testing.assert_allclose(I, np.trace(J) * np.eye(3) - J, rtol=1e-9, atol=1e-12)


def test_a_fine_globe_approaches_the_sphere_with_the_square_of_the_mesh_size() -> None:
    exact = numbers(Sphere(radius=0.4).inertia(density=1000.0))
    errors = [abs(numbers(sphere(0.4, n).inertia(density=1000.0)) - exact).max() for n in (8, 16, 32)]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.1)


@pytest.mark.parametrize(
    "scale", [(0.001, 0.001, 0.001), (2.0, 0.5, 3.0), (-1.0, 1.0, 1.0), (-2.0, -1.0, 0.5)]
)
def test_scaling_and_mirroring_give_the_scaled_box(scale: tuple[float, float, float]) -> None:
    size, centre = np.array([0.3, 0.7, 1.1]), np.array([0.2, -0.1, 0.4])
    mesh = box(size, centre).scale_by(scale)
    expected = box(np.abs(size * np.array(scale)), centre * np.array(scale))
    got, want = numbers(mesh.inertia(density=10.0)), numbers(expected.inertia(density=10.0))
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13 * abs(want).max())
    outward = np.einsum(
        "fi,fi->f", _normals(mesh), mesh.vertices[mesh.faces].mean(axis=1) - centre * np.array(scale)
    )
    assert (outward > 0.0).all()


def _normals(mesh: TriangleMesh) -> Array:
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    return np.cross(b - a, c - a)


def test_an_inside_out_surface_bounds_the_same_solid() -> None:
    mesh = box((1.0, 2.0, 3.0), (1.0, 0.0, 0.0))
    inside_out = TriangleMesh(mesh.vertices, mesh.faces[:, ::-1])
    assert inside_out.inertia(density=3.0).mass == pytest.approx(18.0)
    np.testing.assert_allclose(
        numbers(inside_out.inertia(mass=2.0)), numbers(mesh.inertia(mass=2.0)), atol=1e-13
    )


def test_sums_in_blocks_are_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = numbers(sphere(1.0, 12).inertia(mass=1.0))
    monkeypatch.setattr(volumes, "FACES_PER_BLOCK", 7)
    np.testing.assert_allclose(numbers(sphere(1.0, 12).inertia(mass=1.0)), whole, rtol=1e-12, atol=1e-14)


def test_what_bounds_no_solid_has_no_inertia() -> None:
    mesh = box((1.0, 1.0, 1.0))
    with pytest.raises(ModelError, match="not closed"):
        TriangleMesh(mesh.vertices, mesh.faces[:-2]).inertia(mass=1.0)
    flat = TriangleMesh(np.eye(3), np.array([(0, 1, 2), (0, 2, 1)]))
    with pytest.raises(ModelError, match="no volume"):
        flat.inertia(mass=1.0)
    with pytest.raises(ModelError, match="too large"):
        box((1e200, 1e200, 1e200)).inertia(mass=1.0)
    with pytest.raises(ModelError, match="mass is -1"):
        mesh.inertia(mass=-1.0)
    for options in ({}, {"mass": 1.0, "density": 1.0}):
        with pytest.raises(ArgumentError, match="either mass or density"):
            mesh.inertia(**options)
    for scale in (0.0, np.nan, (1.0, 1.0, 0.0)):
        with pytest.raises(ArgumentError, match="scale"):
            mesh.scale_by(scale)


def test_a_mesh_is_checked_and_frozen() -> None:
    with pytest.raises(ArgumentError, match="names vertex"):
        TriangleMesh(np.zeros((3, 3)), np.array([(0, 1, 3)]))
    with pytest.raises(ArgumentError, match="names vertex"):
        TriangleMesh(np.zeros((3, 3)), np.array([(0, 1, -1)]))
    with pytest.raises(ArgumentError, match="not finite"):
        TriangleMesh(np.full((3, 3), np.nan), np.array([(0, 1, 2)]))
    with pytest.raises(ArgumentError, match=r"expected \(n, 3\)"):
        TriangleMesh(np.zeros((3, 2)), np.array([(0, 1, 2)]))
    with pytest.raises(ValueError, match="read-only"):
        box((1.0, 1.0, 1.0)).vertices[0] = 0.0


# files


def test_every_format_gives_the_same_solid(tmp_path: Path) -> None:
    mesh = box((0.5, 0.25, 0.75), (1.0, 2.0, -0.5))  # exact in float32 too
    obj = "\n".join(
        ["# box", "mtllib box.mtl", "o box", *(f"v {x} {y} {z}" for x, y, z in mesh.vertices.tolist())]
        + ["vn 0 0 1", "vt 0 0", "g sides"]
        + ["f " + " ".join(f"{i + 1}" for i in quad) for quad in BOX_QUADS[:2]]
        + ["f " + " ".join(f"{i + 1}/1/1" for i in quad) for quad in BOX_QUADS[2:3]]
        + ["f " + " ".join(f"{i + 1}//1" for i in quad) for quad in BOX_QUADS[3:4]]
        + ["f " + " ".join(f"{i - 8}/1" for i in quad) for quad in BOX_QUADS[4:5]]
        + ["f {} {} \\\n {} {}".format(*(i + 1 for i in BOX_QUADS[5]))]
    )
    files = {
        "text.stl": text_stl(mesh).encode(),
        "CAPITAL.STL": text_stl(mesh).upper().encode(),
        "dos.stl": text_stl(mesh).replace("\n", "\r\n").encode(),
        "binary.stl": binary_stl(mesh),
        "solid.stl": binary_stl(mesh, b"solid exported by a program that says so"),
        "facet.stl": binary_stl(mesh, b"solid x\nfacet normal 0 0 1".ljust(80, b" ")),
        "box.obj": obj.encode(),
    }
    expected = numbers(mesh.inertia(mass=3.0))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        read = read_mesh(tmp_path / name)
        assert len(read.faces) == 12, name
        np.testing.assert_allclose(numbers(read.inertia(mass=3.0)), expected, atol=1e-12, err_msg=name)
        assert read.bounds[0].tolist() == [0.75, 1.875, -0.875], name
        outward = read.vertices[read.faces].mean(axis=1) - [1.0, 2.0, -0.5]
        assert (np.einsum("fi,fi->f", _normals(read), outward) > 0.0).all(), name


def refused(tmp_path: Path, name: str, content: bytes) -> str:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError) as raised:
        read_mesh(tmp_path / name)
    assert name in str(raised.value)
    return str(raised.value)


def test_a_header_that_promises_too_much_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        words = refused(tmp_path, "bomb.stl", binary_stl(box((1, 1, 1)), count=2**31))
        assert "promises 2147483648 faces; up to 2500000 are read" in words
        words = refused(tmp_path, "solid.stl", binary_stl(box((1, 1, 1)), b"solid", count=2**31))
        assert "promises 2147483648 faces" in words
        words = refused(tmp_path, "less.stl", binary_stl(box((1, 1, 1)), count=2_000_000))
        assert "promises 2000000 faces" in words
        assert "truncated" in words
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.stl", b"", "is empty"),
        ("blank.obj", b" \n", "is empty"),
        ("short.stl", b"binary", "not an STL file"),
        ("none.stl", bytes(84), "no faces"),
        ("none.obj", b"v 0 0 0\n", "no faces"),
        ("cut.stl", binary_stl(box((1, 1, 1)))[:-7], "truncated"),
        ("cut_text.stl", text_stl(box((1, 1, 1)))[:-60].encode(), "truncated|found 2"),
        (
            "two.stl",
            b"solid\nfacet normal 0 0 1\nouter loop\nvertex 0 0\n",
            "line 4: a vertex has three numbers",
        ),
        ("word.stl", b"solid\nvertex 0 0 x\n", 'line 2: "vertex 0 0 x" is not a vertex'),
        (
            "loop.stl",
            b"solid\nfacet\nvertex 0 0 0\nendfacet\n",
            "line 4: a facet has three vertices, found 1",
        ),
        ("junk.stl", b"solid\nhello world\n", 'line 2: found "hello world"'),
        (
            "nan.stl",
            b"solid\nfacet\nvertex 0 0 0\nvertex 0 nan 0\nvertex 0 1 0\nendfacet",
            "vertex 2 is .*finite",
        ),
        ("huge.stl", b"solid\nfacet\nvertex 0 0 0\nvertex 0 1e400 0\nvertex 0 1 0\nendfacet", "vertex 2 is"),
        ("nan.obj", b"v 0 0 0\nv nan 0 0\nv 0 1 0\nf 1 2 3\n", "vertex 2 is .*finite"),
        (
            "high.obj",
            b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nf 1 2 4\n",
            "line 5: a face names vertex 4, but .* 3 vert",
        ),
        (
            "low.obj",
            b"v 0 0 0\nv 1 0 0\nf -1 -2 -3\n",
            "line 3: a face names vertex -3, but 2 vertices precede",
        ),
        ("zero.obj", b"v 0 0 0\nf 0 1 1\n", 'line 2: .* holds "0", which is not a vertex index'),
        ("large.obj", b"v 0 0 0\nf 1 1 99999999999999999999999\n", "not a vertex index"),
        ("word.obj", b"v 0 0 0\nf 1 a 1\n", 'holds "a"'),
        ("few.obj", b"v 0 0 0\nf 1 1\n", "has 2 vertices; a face has at least three"),
        ("pair.obj", b"v 0 0\n", 'line 1: "v 0 0" is not a vertex'),
        (
            "spline.obj",
            b"v 0 0 0\nsurf 0 1 0 1 1 1\n",
            "line 2: .*not supported; export the mesh as polygons",
        ),
    ],
)
def test_broken_meshes_are_refused_with_the_line(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    message = refused(tmp_path, name, content)
    assert re.search(words, message), message


def test_nan_in_a_binary_file_is_found(tmp_path: Path) -> None:
    content = bytearray(binary_stl(box((1, 1, 1))))
    content[84 + 50 * 3 + 12 : 84 + 50 * 3 + 16] = struct.pack("<f", float("nan"))
    assert "vertex 10 is [nan" in refused(tmp_path, "nan.stl", bytes(content))


def test_counts_and_sizes_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = box((1, 1, 1))
    monkeypatch.setattr(stl_obj, "MAX_MESH_FACES", 11)
    assert "promises 12 faces; up to 11" in refused(tmp_path, "a.stl", binary_stl(mesh))
    assert "more than 11 faces" in refused(tmp_path, "b.stl", text_stl(mesh).encode())
    fan = b"v 0 0 0\nf" + b" 1" * 14
    assert "line 2: more than 11 faces" in refused(tmp_path, "c.obj", fan)
    monkeypatch.setattr(meshes, "MAX_MESH_BYTES", 10)
    assert "files up to 10 bytes are read" in refused(tmp_path, "d.obj", fan)


def test_other_formats_name_those_that_are_read(tmp_path: Path) -> None:
    for name in ("a.ply", "a.stl.gz", "a"):
        with pytest.raises(UnknownNameError, match=r'valid: "\.stl", "\.obj", "\.dae"'):
            read_mesh(tmp_path / name)


# colours of OBJ files


def test_faces_of_an_obj_file_have_the_colours_of_its_materials(tmp_path: Path) -> None:
    """By name; a texture, a material without a colour and one that is nowhere give none."""
    quads = [" ".join(str(i + 1) for i in quad) for quad in BOX_QUADS]
    names = ["red paint", "white", "photo", "empty", "nowhere"]
    rows = [f"v {x} {y} {z}" for x, y, z in box((1, 1, 1)).vertices.tolist()]
    rows += ["mtllib own file.mtl", "mtllib missing.mtl other.mtl", f"f {quads[0]}"]
    for name, quad in zip(names, quads[1:]):
        rows += [f"usemtl {name}", f"f {quad}"]
    (tmp_path / "own file.mtl").write_text(
        "newmtl red paint\nKa 9 9 9\nKd 1 0 0\nd 0.5\nnewmtl empty\nNs 2\n"
    )
    (tmp_path / "other.mtl").write_text(
        "newmtl photo\nKd 1 1 1\nmap_Kd a.png\nnewmtl white\nKd 2 1 nan\nKd 1 1 1\n"
    )
    (tmp_path / "box.obj").write_text("\n".join(rows))
    mesh = read_mesh(tmp_path / "box.obj")
    colours = [tuple(mesh.colours[k]) if k >= 0 else None for k in mesh.colour_of_face.tolist()]
    expected = [None, (1.0, 0.0, 0.0, 1.0), (1.0, 1.0, 1.0, 1.0), None, None, None]
    assert colours == [colour for colour in expected for _ in range(2)]
    pieces = {colour: len(piece.faces) for piece, colour in mesh.pieces()}
    assert pieces == {None: 8, expected[1]: 2, expected[2]: 2}


def test_materials_are_read_below_the_folder_of_the_obj_file_only(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret.mtl").write_text("newmtl a\nKd 1 0 0\n")
    (tmp_path / "inside" / "link.mtl").symlink_to(tmp_path / "secret.mtl")
    for name in ("../secret.mtl", "link.mtl", str(tmp_path / "secret.mtl"), "\0", ".", "\udcff"):
        text = f"mtllib {name}\nusemtl a\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
        (tmp_path / "inside" / "a.obj").write_bytes(text.encode(errors="surrogateescape"))
        assert read_mesh(tmp_path / "inside" / "a.obj").colour_of_face.tolist() == [-1], name


def test_colours_are_checked() -> None:
    mesh = box((1, 1, 1))
    for colours, places in (
        (np.ones((1, 4)), [0] * 11),
        (np.ones((1, 4)), [1] * 12),
        (np.ones((1, 4)), [-2] * 12),
    ):
        with pytest.raises(ArgumentError, match="colour_of_face"):
            TriangleMesh(mesh.vertices, mesh.faces, colours, np.array(places))
    with pytest.raises(ArgumentError, match=r"colours has the shape \(1, 3\)"):
        TriangleMesh(mesh.vertices, mesh.faces, np.ones((1, 3)), np.zeros(12, int))
