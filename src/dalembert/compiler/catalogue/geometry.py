"""The geometry of configuration space."""

from __future__ import annotations

from typing import Final

from dalembert.algorithms import coriolis, geometry
from dalembert.compiler.catalogue.entry import LibraryFunction, square
from dalembert.compiler.catalogue.refusals import HAS_INVERSE
from dalembert.model.model import Model

__all__ = ["GEOMETRY"]


def _velocity(model: Model) -> tuple[int, ...]:
    return (model.nv,)


GEOMETRY: Final[dict[str, LibraryFunction]] = {
    "coriolis_matrix": LibraryFunction(
        {"composite_bodies": square(coriolis.coriolis_matrix)}, ("q", "v"), frame_free=True
    ),
    "coriolis_product": LibraryFunction(
        {"passes": coriolis.coriolis_product},
        ("q", "v", "w"),
        frame_free=True,
        loops=("passes",),
        shapes={"w": _velocity},
    ),
    "mass_matrix_rate": LibraryFunction(
        {"composite_bodies": square(coriolis.mass_matrix_rate)}, ("q", "v"), frame_free=True
    ),
    "christoffel_symbols": LibraryFunction(
        {
            "coriolis_matrix": square(coriolis.christoffel_symbols, 3),
            "derivatives": square(coriolis.christoffel_symbols_by_derivatives, 3),
        },
        ("q",),
        frame_free=True,
    ),
    "hamiltonian": LibraryFunction(
        {"ltdl": geometry.hamiltonian}, ("q", "p"), shapes={"p": _velocity}, preconditions=HAS_INVERSE
    ),
    "hamiltonian_rates": LibraryFunction(
        {"passes": geometry.hamiltonian_rates},
        ("q", "p", "tau"),
        frame_free=True,
        shapes={"p": _velocity},
        preconditions=HAS_INVERSE,
    ),
    "momentum_coordinates": LibraryFunction(
        {"passes": geometry.momentum_coordinates}, ("q", "v"), frame_free=True, loops=("passes",)
    ),
    "velocity_coordinates": LibraryFunction(
        {"ltdl": geometry.velocity_coordinates},
        ("q", "p"),
        frame_free=True,
        shapes={"p": _velocity},
        preconditions=HAS_INVERSE,
    ),
    "inner_product": LibraryFunction(
        {"metric": geometry.inner_product},
        ("q", "u", "w"),
        frame_free=True,
        shapes={"u": _velocity, "w": _velocity},
    ),
    "connection_term": LibraryFunction(
        {"passes": geometry.connection_term}, ("q", "v", "u"), frame_free=True, shapes={"u": _velocity}
    ),
    "geodesic_acceleration": LibraryFunction(
        {"ltdl": geometry.geodesic_acceleration}, ("q", "v"), frame_free=True, preconditions=HAS_INVERSE
    ),
    "geodesic_step": LibraryFunction(
        {"rk4": geometry.geodesic_step}, ("q", "v", "dt"), frame_free=True, preconditions=HAS_INVERSE
    ),
}
