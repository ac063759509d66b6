"""The farthest vertices of meshes by cells of directions: those of a search of all vertices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from tests.codegen.sample_programs import bits, run

from dalembert.codegen import compile_program
from dalembert.contact.narrow_phase.direction_cells import CELLS_PER_EDGE, DirectionCells, FaceCells
from dalembert.contact.narrow_phase.forms import MeshForm
from dalembert.contact.narrow_phase.support import convex_solid, planes_of
from dalembert.model.shapes import ConvexMesh
from dalembert.scalar import Scalar
from dalembert.spatial import Vec3
from dalembert.tracing import ArrayArgument, trace
from dalembert.tracing.program import Program

Array = np.ndarray


def hull(count: int, radii: Sequence[float], seed: int = 0) -> Array:
    """Vertices of a convex solid: points of an ellipsoid's surface about a centre beside the origin."""
    x = np.random.default_rng(seed).normal(size=(count, 3))
    found = x / np.linalg.norm(x, axis=1, keepdims=True) * radii + [0.3, -0.2, 0.1]
    return found[ConvexHull(found).vertices]


def grid_box() -> Array:
    """A box with vertices on its edges and faces too, several of which are equally far along some
    directions; coordinates are multiples of 1/8, so that these heights are equal after rounding too."""
    x = np.array(list(product(np.arange(-4, 5, 2), np.arange(-2, 3), np.arange(-1, 2)))) / 8.0
    return x[(np.abs(x) == [0.5, 0.25, 0.125]).any(axis=1)]


MESHES = {
    "tetrahedron": hull(4, (0.3, 0.3, 0.3)),
    "nine vertices": hull(9, (0.1, 0.2, 0.15), 1),
    "many vertices": hull(200, (0.4, 0.4, 0.4), 2),
    "flat": hull(60, (0.5, 0.4, 1e-3), 3),
    "elongated": hull(60, (0.01, 0.02, 2.0), 4),
    "grid box": grid_box(),
}


def directions() -> Array:
    """Random directions, and those on borders and corners of cells and one rounding error beside them; from
    very short ones to very long ones."""
    rng = np.random.default_rng(7)
    steps = np.arange(-CELLS_PER_EDGE, CELLS_PER_EDGE + 1, 2) / CELLS_PER_EDGE
    corners = [(s, a, b) for s in (-1.0, 1.0) for a in steps for b in steps]
    borders = [(s, a, rng.uniform(-1.0, 1.0)) for s in (-1.0, 1.0) for a in steps for _ in range(3)]
    special = np.concatenate([np.roll([*corners, *borders], k, axis=1) for k in range(3)])
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    beside = np.concatenate([np.nextafter(special, 2.0), np.nextafter(special, -2.0)])
    usual = np.concatenate([rng.normal(size=(2000, 3)), axes, special, beside])
    some = usual[::7, None] * np.array([1e-290, 1e-150, 1e-9, 1e9, 1e150, 1e300])[:, None]
    return np.concatenate([usual, some.reshape(-1, 3)])


def farthest(vertices: Array, d: Array) -> Array:
    """The first of the vertices that lie farthest along each direction."""
    heights = vertices[:, 0] * d[:, :1] + vertices[:, 1] * d[:, 1:2] + vertices[:, 2] * d[:, 2:]
    return vertices[heights.argmax(axis=1)]


def support(cells: DirectionCells, mesh: Scalar, d: Sequence[Scalar]) -> list[Scalar]:
    return list(cells.support(mesh, Vec3(*d)))


def program_of(cells: DirectionCells) -> Program:
    """The support for the number of a mesh and a direction."""
    return trace(lambda x: support(cells, x[0], x[1:]), [ArrayArgument("x", (4,))]).program()


@pytest.mark.parametrize("name", MESHES)
def test_the_farthest_vertex_of_a_cell_is_that_of_all_vertices(name: str) -> None:
    vertices, d = MESHES[name], directions()
    cells = DirectionCells.of([vertices])
    found = np.stack(np.broadcast_arrays(*support(cells, np.zeros(len(d)), d.T)), axis=1)
    np.testing.assert_array_equal(found, farthest(vertices, d))
    alone = np.array([support(cells, 0.0, row) for row in d[::50].tolist()])
    np.testing.assert_array_equal(alone, found[::50])


def test_a_cell_lists_few_vertices_of_many() -> None:
    """Not all of them, which would be as right."""
    vertices = hull(256, (0.4, 0.3, 0.2), 5)
    counts = np.diff(DirectionCells.of([vertices]).first)
    assert len(vertices) == 256
    assert counts.min() >= 1
    assert counts.mean() < 10


@pytest.mark.parametrize("lanes", [1, 2, 4, None])
def test_machine_code_finds_the_vertices_of_plain_python_for_several_meshes(lanes: int | None) -> None:
    cells, d = DirectionCells.of(list(MESHES.values())), directions()
    number = np.random.default_rng(8).integers(len(MESHES), size=len(d))
    expected = np.empty((len(d), 3))
    for k, vertices in enumerate(MESHES.values()):
        expected[number == k] = farthest(vertices, d[number == k])
    given = np.column_stack([number, d])
    plain = np.array([support(cells, *row[:1], row[1:]) for row in given[::20].tolist()])
    assert np.array_equal(bits(plain), bits(expected[::20]))
    program = program_of(cells)
    found = run(compile_program(program, lanes=lanes) if lanes else compile_program(program), {"x": given})
    assert np.array_equal(bits(found["output"]), bits(expected))


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_any_direction_gives_a_vertex_of_the_mesh(dtype: str, lanes: int) -> None:
    """Zero, tiny, infinite and undefined ones, of which no vertex is the farthest."""
    values = (0.0, -0.0, 1e-310, 1e-40, 1.0, np.inf, -np.inf, np.nan)
    meshes = list(MESHES.values())
    numbers, d = np.arange(len(meshes)), np.array(list(product(values, repeat=3)))
    given = np.column_stack([np.repeat(numbers, len(d)), np.tile(d, (len(meshes), 1))])
    kernel = compile_program(program_of(DirectionCells.of(meshes)), dtype=dtype, lanes=lanes)
    found = run(kernel, {"x": given.astype(dtype)})["output"].reshape(len(meshes), -1, 3)
    for vertices, rows in zip(meshes, found, strict=True):
        own = {tuple(vertex) for vertex in vertices.astype(dtype)}
        assert {tuple(row) for row in rows} <= own


@pytest.mark.parametrize("name", ["nine vertices", "many vertices", "grid box"])
def test_the_planes_around_the_farthest_point_clip_as_all_planes_do(name: str) -> None:
    """Of polygons on a mesh: on its faces, and on corners, a little tilted from faces or not."""
    mesh = ConvexMesh(MESHES[name])
    vertices, (normals, offsets) = np.array(mesh.vertices), planes_of(mesh)
    cells, faces = DirectionCells.of([vertices]), FaceCells.of([(vertices, normals, offsets)])
    form = MeshForm(cells, faces, 0.0, Vec3(0.0, 0.0, 0.0), Vec3(1.0, 1.0, 1.0))
    rng = np.random.default_rng(9)
    tilted = normals + rng.normal(size=normals.shape) * rng.choice([0.0, 1e-4, 1e-2, 1.0], (len(normals), 1))
    n = np.concatenate([normals, tilted])
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    top = farthest(vertices, n)
    across = np.cross(n, rng.normal(size=n.shape))
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    other = np.cross(n, across)
    middle = top + 0.05 * rng.normal(size=n.shape)
    middle -= n * np.sum(n * (middle - top), axis=1, keepdims=True)
    square = ((1, 1), (-1, 1), (-1, -1), (1, -1))
    corners = [Vec3(*(middle + 0.1 * (x * across + y * other)).T) for x, y in square]
    few, every = (convex_solid(solid).clip(corners, Vec3(*n.T)) for solid in (form, mesh))
    found = 0
    for (begin, end), (first, last) in zip(few, every, strict=True):
        is_there = np.maximum(first, 0.0) <= np.minimum(last, 1.0)
        np.testing.assert_array_equal(np.maximum(begin, 0.0) <= np.minimum(end, 1.0), is_there)
        for x, y in ((begin, first), (end, last)):
            within = is_there & (y >= 0.0) & (y <= 1.0)
            np.testing.assert_allclose(x[within], y[within], atol=1e-12)
            found += within.sum()
    assert found > len(normals)
