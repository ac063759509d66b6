"""COLLADA: places, cuts and colours in closed form, the files of packages against Assimp, and files that
lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.engines.file_table import URDF_PACKAGES, files_of
from tests.formats.collada_files import (
    CUBE_QUADS,
    UNIT_CUBE,
    collada,
    collada_text,
    geometry,
    instance,
    material,
    primitive,
    quads,
)

from dalembert.errors import FileError
from dalembert.formats import collada as reader
from dalembert.formats.meshes import read_mesh
from dalembert.formats.triangle_mesh import TriangleMesh


def read(tmp_path: Path, text: str) -> TriangleMesh:
    (tmp_path / "part.dae").write_text(text)
    return read_mesh(tmp_path / "part.dae")


def cube_at_rest(tmp_path: Path, primitives: str) -> TriangleMesh:
    return read(tmp_path, collada(geometry("cube", primitives), nodes=f"<node>{instance('cube')}</node>"))


TRIANGLES = " ".join(
    f"{a} {b} {c} {a} {c} {d}" for a, b, c, d in zip(*(CUBE_QUADS.split()[k::4] for k in range(4)))
)


QUADS = "".join(f"<p>{' '.join(CUBE_QUADS.split()[k : k + 4])}</p>" for k in range(0, 24, 4))
STRIPS = "<p>0 2 1 3</p><p>4 5 6 7</p><p>0 1 4 5</p><p>2 6 3 7</p><p>0 4 2 6</p><p>1 3 5 7</p>"
OTHERS = (
    '<input semantic="NORMAL" source="#n" offset="0"/><input semantic="TEXCOORD" source="#t" offset="2"/>'
)


@pytest.mark.parametrize(
    "primitives",
    [
        quads("cube"),
        primitive("triangles", "cube", f"<p>{TRIANGLES}</p>"),
        primitive("polygons", "cube", QUADS),
        primitive("trifans", "cube", QUADS),
        primitive("tristrips", "cube", STRIPS),
        primitive(
            "polylist",
            "cube",
            "<vcount>4 4 4 4 4 4</vcount><p>" + " ".join(f"7 {i} 9" for i in CUBE_QUADS.split()) + "</p>",
            offset=1,
            more=OTHERS,
        ),
        primitive("lines", "cube", "<p>0 1</p>") + quads("cube") + primitive("triangles", "cube", ""),
    ],
    ids=["polylist", "triangles", "polygons", "fans", "strips", "more inputs", "lines beside"],
)  # fmt: skip
def test_every_primitive_gives_the_same_cube(tmp_path: Path, primitives: str) -> None:
    """Closed, outward, with the inertia of the cube."""
    mesh = cube_at_rest(tmp_path, primitives)
    assert len(mesh.faces) == 12
    inertia = mesh.inertia(density=6.0)
    assert float(inertia.mass) == pytest.approx(6.0)
    assert list(inertia.com) == pytest.approx([0.5, 0.5, 0.5])
    assert float(inertia.inertia_at_com.xx) == pytest.approx(1.0)
    corners = mesh.vertices[mesh.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.einsum("fi,fi->f", normals, corners.mean(axis=1) - 0.5) > 0.0).all()


def test_accessors_say_where_the_coordinates_are(tmp_path: Path) -> None:
    """Four numbers a vertex, after two others."""
    rows = np.array(UNIT_CUBE.split()).reshape(-1, 3)
    wide = " ".join(["9 9", *(f"{x} {y} {z} 5" for x, y, z in rows)])
    text = collada(geometry("cube", quads("cube"), wide, stride=4), nodes=f"<node>{instance('cube')}</node>")
    mesh = read(tmp_path, text.replace('stride="4"', 'stride="4" offset="2"'))
    assert mesh.volume == pytest.approx(1.0)
    assert mesh.bounds[1].tolist() == [1.0, 1.0, 1.0]


def test_nodes_place_what_they_hold_in_metres(tmp_path: Path) -> None:
    """x -> unit T R S x in the order of the file, through nodes in nodes; <up_axis> turns nothing."""
    angle = np.radians(30.0)
    c, s = np.cos(angle), np.sin(angle)
    inner = (
        "<translate>1 2 3</translate><rotate>0 0 2 30</rotate><scale>2 3 -1</scale>"
        f"<matrix>0 -1 0 5  1 0 0 6  0 0 1 7  0 0 0 1</matrix>{instance('cube')}"
    )
    outer = f"<node><scale>10 10 10</scale><node>{inner}</node></node>"
    mesh = read(
        tmp_path, collada(geometry("cube", quads("cube")), nodes=outer, asset='<unit meter="0.001"/>')
    )
    rows = np.array(UNIT_CUBE.split(), dtype=float).reshape(-1, 3)
    turned = rows @ np.array([(0, -1, 0), (1, 0, 0), (0, 0, 1)]).T + [5, 6, 7]
    expected = (turned * [2, 3, -1]) @ np.array([(c, -s, 0), (s, c, 0), (0, 0, 1)]).T + [1, 2, 3]
    expected *= 0.01
    found = {tuple(row) for row in np.round(mesh.vertices, 9).tolist()}
    assert found == {tuple(row) for row in np.round(expected, 9).tolist()}
    assert mesh.volume == pytest.approx(6e-6)
    corners = mesh.vertices[mesh.faces]  # outward, although one scale is negative
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.einsum("fi,fi->f", normals, corners.mean(axis=1) - expected.mean(axis=0)) > 0.0).all()


def test_nodes_of_libraries_are_placed_where_they_are_named(tmp_path: Path) -> None:
    library = f'<node id="wheel"><translate>0 0 1</translate>{instance("cube")}</node>'
    nodes = "".join(
        f'<node><translate>{x} 0 0</translate><instance_node url="#wheel"/></node>' for x in (0, 10, 20)
    )
    mesh = read(tmp_path, collada(geometry("cube", quads("cube")), nodes=nodes, library=library))
    assert mesh.volume == pytest.approx(3.0)
    assert mesh.bounds[0].tolist() == [0.0, 0.0, 1.0]
    assert mesh.bounds[1].tolist() == [21.0, 1.0, 2.0]


def test_a_library_without_a_scene_is_read_as_it_is(tmp_path: Path) -> None:
    text = collada(geometry("cube", quads("cube")), nodes="", asset='<unit meter="0.5"/>')
    assert read(tmp_path, text).volume == pytest.approx(0.125)


def test_faces_have_the_diffuse_colours_of_their_materials(tmp_path: Path) -> None:
    """By the symbol of each instance; a texture, and a symbol that is not bound, give none."""
    mesh = read(tmp_path, collada_text())
    pieces = {colour: piece for piece, colour in mesh.pieces()}
    assert set(pieces) == {(1.0, 0.0, 0.0, 1.0), (1.0, 1.0, 1.0, 1.0)}
    assert pieces[1.0, 0.0, 0.0, 1.0].volume == pytest.approx(1e-6)
    assert pieces[1.0, 1.0, 1.0, 1.0].volume == pytest.approx(6e-6)
    np.testing.assert_allclose(pieces[1.0, 0.0, 0.0, 1.0].bounds[0], [0.03, 0.0, 0.0], atol=1e-12)
    assert mesh.scale_by(2.0).colour_of_face.tolist() == mesh.colour_of_face.tolist()
    textured = material("photo", '<texture texture="image" texcoord="uv"/>')
    halves = primitive("triangles", "cube", f"<p>{TRIANGLES[: len(TRIANGLES) // 2]}</p>", "left") + primitive(
        "triangles", "cube", f"<p>{TRIANGLES[len(TRIANGLES) // 2 :].strip()}</p>", "right"
    )
    for bound in ({"left": "photo"}, {"other": "photo"}, {"left": "nothing"}, {}):
        nodes = f"<node>{instance('cube', **bound)}</node>"
        plain = read(tmp_path, collada(geometry("cube", halves), nodes=nodes, materials=(textured,)))
        assert plain.colour_of_face.tolist() == [-1] * 12
        ((piece, colour),) = plain.pieces()
        assert colour is None
        assert piece.volume == pytest.approx(1.0)


NODE = f"<node>{instance('cube')}</node>"
CUBE = geometry("cube", quads("cube"))


def of(primitives: str, **options: str) -> str:
    return collada(geometry("cube", primitives, **options), nodes=NODE)


def triangles(indices: str, offset: int = 0) -> str:
    return of(primitive("triangles", "cube", f"<p>{indices}</p>", offset=offset))


def polygons(counts: str) -> str:
    return of(primitive("polylist", "cube", f"<vcount>{counts}</vcount><p>0 1 2</p>"))


def placed(transformations: str) -> str:
    return collada(CUBE, nodes=f"<node>{transformations}{instance('cube')}</node>")


BAD = {
    "not a scene": ("<robot/>", "root element is <robot>"),
    "entity": (placed("").replace("<COLLADA", "<!DOCTYPE a [<!ENTITY b 'c'>]>\n<COLLADA"), "DOCTYPE"),
    "empty": (collada(nodes=""), "no faces"),
    "lines only": (of(primitive("lines", "cube", "<p>0 1</p>")), "no faces"),
    "index": (triangles("0 1 8"), "names vertices 0 to 8, and there are 8"),
    "negative": (triangles("0 -1 2"), "names vertices -1 to 2"),
    "huge index": (triangles("0 1 99999999999999999999"), "than whole numbers"),
    "fraction": (triangles("0 1 2.5"), "something else than whole numbers"),
    "word": (of(quads("cube"), numbers=UNIT_CUBE + " x"), "<float_array> holds something else than numbers"),
    "nan": (of(quads("cube"), numbers="nan " + UNIT_CUBE[2:]), "must be finite"),
    "few vertices": (of(quads("cube"), numbers="0 0 0 1"), "there are 1"),
    "counts": (polygons("4"), "do not have 3 corners"),
    "huge counts": (
        polygons("9223372036854775807 9223372036854775807 5"),
        "do not have 3 corners",
    ),
    "negative count": (polygons("-1 4"), "do not have 3"),
    "inputs": (triangles("0 1 2", 1), "3 indices are not a multiple of 2"),
    "huge offset": (triangles("0", 2**31), "inputs; up to 64"),
    "huge stride": (of(quads("cube")).replace('stride="3"', 'stride="2000000000"'), "stride is 2000000000"),
    "no stride": (of(quads("cube")).replace('stride="3"', 'stride="0"'), "stride is 0"),
    "no source": (of(quads("nothing")), 'names "nothing-positions-vertices", which is not in'),
    "no geometry": (collada(nodes=NODE), 'url names "cube", which is not in the file'),
    "no vertices": (of(quads("cube").replace("VERTEX", "NORMAL")), "needs one <input> of VERTEX"),
    "unit": (collada(CUBE, nodes=NODE, asset='<unit meter="0"/>'), "unit is 0.0 m; give a positive length"),
    "skew": (placed("<skew>1 2 3 4 5 6 7</skew>"), "not supported"),
    "matrix": (placed("<matrix>1 2</matrix>"), "give 16"),
    "ring": (
        collada(CUBE, nodes='<node id="a"><instance_node url="#a"/></node>'),
        "nested deeper than 100, or in a ring",
    ),
    "overflow": (
        placed("<scale>1e200 1 1</scale><scale>1e200 1 1</scale>"),
        "must be finite",
    ),
    "ended": (collada(CUBE, nodes=NODE)[:-300], "not well-formed"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_bad_files_are_refused_with_their_place(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "part.dae").write_text(text)
    with pytest.raises(FileError) as raised:
        read_mesh(tmp_path / "part.dae")
    assert words in str(raised.value), str(raised.value)
    assert "part.dae" in str(raised.value)
    assert "defect of dalembert" not in str(raised.value)


def test_nodes_that_double_are_refused_before_they_fill_memory(tmp_path: Path) -> None:
    """A hundred nodes, each naming the next twice, would be 2^100 cubes."""
    library = "".join(
        f'<node id="n{k}"><instance_node url="#n{k + 1}"/><instance_node url="#n{k + 1}"/></node>'
        for k in range(60)
    )
    for last in (f'<node id="n60">{instance("cube")}</node>', '<node id="n60"/>'):
        text = collada(CUBE, nodes='<node><instance_node url="#n0"/></node>', library=library + last)
        with pytest.raises(FileError, match=r"more than \d+ (triangles|nodes)"):
            read(tmp_path, text)


def test_files_of_packages_have_the_bounds_that_assimp_finds() -> None:
    """Every file of the packages loads; the bounds of every fourth are those of coal, which reads them
    through Assimp. (Its triangles of files with several meshes name vertices of the first one only.)
    """
    coal = pytest.importorskip("coal")
    loader, files = coal.MeshLoader(), []
    for ending in (".dae", ".DAE"):
        files += files_of(URDF_PACKAGES, ending)
    assert len(files) > 300
    for number, file in enumerate(files):
        mesh = read_mesh(file.path)
        if number % 4:
            continue
        theirs = np.array(loader.load(str(file.path), np.ones(3)).vertices())
        low, high = mesh.bounds
        size = float((high - low).max())
        np.testing.assert_allclose(low, theirs.min(axis=0), atol=1e-5 * size, err_msg=file.name)
        np.testing.assert_allclose(high, theirs.max(axis=0), atol=1e-5 * size, err_msg=file.name)


def test_numbers_are_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "TEXT_BLOCK", 3)
    assert read(tmp_path, collada_text()).volume == pytest.approx(7e-6)
