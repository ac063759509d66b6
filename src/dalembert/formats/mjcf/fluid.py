"""The fluid of an MJCF file: MuJoCo's inertia-box and ellipsoid models as drag shapes of a model.

A body with a geom of `fluidshape="ellipsoid"` feels the fluid by such geoms alone, any other one as a box of
its mass and principal moments of inertia (I, J, K) about its centre of mass: an edge is
sqrt(6 (J + K - I) / m).
"""

from __future__ import annotations

import math
from typing import Any, Final

from dalembert.formats.mjcf.bodies import (
    CAPSULE,
    CYLINDER,
    SPHERE,
    WORLD,
    Compiled,
    floats,
    pose,
    unique_name,
)
from dalembert.model import ModelBuilder

MIN_VALUE: Final = 1e-15
"""MuJoCo's least mass and least squared edge: bodies below have no drag, edges are not shorter."""


def add_fluid(builder: ModelBuilder, compiled: Compiled) -> None:
    """Add the fluid of a file, and the shapes of moving bodies on which it acts."""
    m = compiled.m
    builder.set_fluid(density=m.opt.density, viscosity=m.opt.viscosity, wind=floats(m.opt.wind))
    used: set[str] = set()
    for b in range(1, m.nbody):
        home = compiled.homes[b]
        if home.body == WORLD or m.body_mass[b] < MIN_VALUE:
            continue
        first = int(m.body_geomadr[b])
        geoms = [g for g in range(first, first + int(m.body_geomnum[b])) if m.geom_fluid[g][0] > 0.0]
        for g in geoms:
            name = unique_name(compiled.name("GEOM", g), used)
            _add_ellipsoid(builder, compiled, g, name)
        if not geoms:
            at = home.at @ pose(m.body_ipos[b], m.body_iquat[b])
            name = unique_name(compiled.bodies[b], used)
            builder.add_drag_shape(name, home.body, _edges(m, b), placement=at)


def _edges(m: Any, b: int) -> tuple[float, ...]:
    moments, mass = floats(m.body_inertia[b]), float(m.body_mass[b])
    total = sum(moments)
    return tuple(math.sqrt(max(MIN_VALUE, total - 2.0 * moment) / mass * 6.0) for moment in moments)


def _add_ellipsoid(builder: ModelBuilder, compiled: Compiled, g: int, name: str) -> None:
    """Add the ellipsoid of a geom; its numbers are the interaction, five coefficients, virtual masses and
    virtual inertias."""
    fluid = floats(compiled.m.geom_fluid[g])
    body, at = compiled.placement("geom", g)
    scale, coefficients, added = fluid[0], fluid[1:6], fluid[6:12]
    builder.add_drag_shape(
        name,
        body,
        _half_axes(compiled.m, g),
        placement=at,
        coefficients=[scale * x for x in coefficients],
        added_inertia=[scale * x for x in added],
    )


def _half_axes(m: Any, g: int) -> tuple[float, float, float]:
    """Return the half axes of the ellipsoid that stands for a geom."""
    x, y, z = floats(m.geom_size[g])
    kind = int(m.geom_type[g])
    if kind == SPHERE:
        return x, x, x
    if kind == CAPSULE:
        return x, x, y + x
    return (x, x, y) if kind == CYLINDER else (x, y, z)
