"""Geoms and sites of a compiled MuJoCo model as shapes and frames."""

from __future__ import annotations

from typing import Any, Final

from dalembert.errors import ModelError
from dalembert.formats.mjcf_compiled import Compiled, Home, pose, unique_name
from dalembert.model import ModelBuilder
from dalembert.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    Ellipsoid,
    HeightField,
    Mesh,
    Plane,
    Shape,
    Sphere,
)
from dalembert.model.shapes.shape import ALL_GROUPS, USUAL_FRICTION
from dalembert.spatial import Transform

__all__ = ["DEFAULT_FRICTION_PRIORITY", "add_sites", "contact_is_off", "shapes_of", "has_default_friction"]

PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, SDF = range(9)

HIDDEN_GROUP: Final = 3
"""Geoms of this group and later ones are not drawn by MuJoCo's viewer unless asked for."""

DEFAULT_FRICTION_PRIORITY: Final = -1
"""The priority of a geom with the default friction: that of any other geom overrides it."""

DEFAULT_RGBA: Final = (0.5, 0.5, 0.5, 1.0)


def shapes_of(compiled: Compiled, homes: list[Home]) -> dict[str, list[Shape]]:
    """Return the shapes of every body of ours, by its name; "world" for those that stand still."""
    m = compiled.m
    found: dict[str, list[Shape]] = {}
    paired = {int(g) for g in (*m.pair_geom1, *m.pair_geom2)}
    for g in range(m.ngeom):
        home = homes[m.geom_bodyid[g]]
        shape = _shape(compiled, g, home.at @ pose(m.geom_pos[g], m.geom_quat[g]), paired=g in paired)
        if shape is not None:
            found.setdefault(home.body, []).append(shape)
    return found


def add_sites(builder: ModelBuilder, compiled: Compiled, homes: list[Home], taken: set[str]) -> None:
    """Add every site as a frame."""
    m = compiled.m
    for s in range(m.nsite):
        home = homes[m.site_bodyid[s]]
        name = compiled.name("SITE", s)
        own = unique_name(name, taken)
        if own != name:
            compiled.report.note(f'site "{name}" is called "{own}": the name is taken')
        builder.add_frame(own, home.body, home.at @ pose(m.site_pos[s], m.site_quat[s]))


def _shape(compiled: Compiled, g: int, placement: Transform, *, paired: bool) -> Shape | None:
    m = compiled.m
    kind = int(m.geom_type[g])
    size = [float(x) for x in m.geom_size[g]]
    given = compiled.mujoco.mj_id2name(m, compiled.mujoco.mjtObj.mjOBJ_GEOM, g) or ""
    options: dict[str, Any] = {
        "name": given,
        "placement": placement,
        "rgba": _rgba(m, g),
        "visual": int(m.geom_group[g]) < HIDDEN_GROUP,
        "collision": not contact_is_off(compiled)
        and (paired or bool(m.geom_contype[g] or m.geom_conaffinity[g])),
        "friction": _friction(m, g),
        "group": int(m.geom_contype[g]) & ALL_GROUPS,
        "collides_with": int(m.geom_conaffinity[g]) & ALL_GROUPS,
    }
    if kind == PLANE:
        return Plane(**options)
    if kind == SPHERE:
        return Sphere(size[0], **options)
    if kind == CAPSULE:
        return Capsule(size[0], 2.0 * size[1], **options)
    if kind == ELLIPSOID:
        return Ellipsoid((size[0], size[1], size[2]), **options)
    if kind == CYLINDER:
        return Cylinder(size[0], 2.0 * size[1], **options)
    if kind == BOX:
        return Box((2.0 * size[0], 2.0 * size[1], 2.0 * size[2]), **options)
    if kind == MESH:
        return _mesh(compiled, g, options)
    if kind == HFIELD:
        return _height_field(m, int(m.geom_dataid[g]), options)
    compiled.report.note(f'ignored: geom "{given or g}" is a signed distance field, which is not supported')
    return None


def contact_is_off(compiled: Compiled) -> bool:
    """Return whether the options of the file switch contact off."""
    return compiled.is_disabled("CONTACT") or compiled.is_disabled("CONSTRAINT")


def has_default_friction(m: Any, g: int) -> bool:
    """Return whether a geom has the default friction, which that of any other geom overrides."""
    usual = [float(x) for x in m.geom_friction[g]] == list(USUAL_FRICTION)
    return usual and int(m.geom_priority[g]) == DEFAULT_FRICTION_PRIORITY


def _friction(m: Any, g: int) -> tuple[float, ...] | None:
    """Return the friction of a geom: None for the default; zero with condim 1, so that the other geom
    decides.
    """
    if has_default_friction(m, g):
        return None
    return tuple(max(0.0, float(x)) if m.geom_condim[g] > 1 else 0.0 for x in m.geom_friction[g])


def _height_field(m: Any, field: int, options: dict[str, Any]) -> Shape:
    """Return a height field, rows along y, columns along x; MuJoCo's data are fractions of the greatest
    height.
    """
    x, y, top, _ = (float(size) for size in m.hfield_size[field])
    rows, columns = int(m.hfield_nrow[field]), int(m.hfield_ncol[field])
    first = int(m.hfield_adr[field])
    shares = m.hfield_data[first : first + rows * columns].reshape(rows, columns)
    return HeightField((top * shares.astype(float)).tolist(), (2.0 * x, 2.0 * y), **options)


def _mesh(compiled: Compiled, g: int, options: dict[str, Any]) -> Shape | None:
    """Return a reference to the mesh's file, in the frame of the file; a mesh without a file becomes its
    hull.

    MuJoCo moves meshes to their principal axes: its geom stands at X M with the pose X that the model gives
    and the mesh's own pose M, so that the file's frame stands at X M M^-1.
    """
    m = compiled.m
    mesh = int(m.geom_dataid[g])
    adr = int(m.mesh_pathadr[mesh])
    path = bytes(m.paths[adr:]).split(b"\0", 1)[0].decode("utf-8", "replace") if adr >= 0 else ""
    if not path:
        first, count = int(m.mesh_vertadr[mesh]), int(m.mesh_vertnum[mesh])
        return _hull(compiled, g, m.mesh_vert[first : first + count], options)
    options["placement"] = options["placement"] @ pose(m.mesh_pos[mesh], m.mesh_quat[mesh]).inverse()
    scale = [float(x) for x in m.mesh_scale[mesh]]
    return Mesh(str(compiled.source.files[path]), (scale[0], scale[1], scale[2]), **options)


def _hull(compiled: Compiled, g: int, vertices: Any, options: dict[str, Any]) -> Shape | None:
    """Return the hull of the mesh, which is what MuJoCo collides, in MuJoCo's own frame of it."""
    try:
        return ConvexMesh(vertices.tolist(), **options)
    except ModelError as error:
        compiled.report.note(f'ignored: geom "{options["name"] or g}": {error}')
        return None


def _rgba(m: Any, g: int) -> tuple[float, ...]:
    own = tuple(float(x) for x in m.geom_rgba[g])
    material = int(m.geom_matid[g])
    chosen = (float(x) for x in m.mat_rgba[material]) if own == DEFAULT_RGBA and material >= 0 else own
    return tuple(min(1.0, max(0.0, x)) for x in chosen)
