"""Catalogue entries of kinematic trees and functions built on them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from dalembert import algorithms
from dalembert.algorithms import gears, geometry, loops
from dalembert.algorithms.forward_dynamics import TREE_METHODS
from dalembert.algorithms.inverse_dynamics import spanning_tree_forces
from dalembert.compiler.catalogue.entry import LibraryFunction, square, textbook
from dalembert.compiler.catalogue.refusals import (
    CAN_BE_NORMALIZED,
    HAS_INVERSE,
    KEEPS_CONSTRAINTS,
    WITHIN_REACH,
)
from dalembert.model import configuration
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.spatial import Vec3

__all__ = ["TREES"]


def _forces_alone(algorithm: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an algorithm with by-products to return its forces only."""
    return lambda *args, **options: algorithm(*args, **options).tau


def _rotations_translations(tree: Tree, q: Any, *, time: Any = None) -> tuple[list[Any], list[Any]]:
    poses = list(algorithms.forward_kinematics(tree, q, time=time))
    return [pose.R for pose in poses], [pose.p for pose in poses]


def _frame_motion(model: Model, q: Any, v: Any, a: Any, *, where: str, time: Any = None) -> Any:
    place = model.frame(where)
    if place.body < 0:
        return place.placement.p, Vec3.zero(), Vec3.zero()
    motion = algorithms.body_motions(model, q, v, a, time=time)[place.body]
    return tuple(algorithms.point_motion(motion, place.placement.p))


TREES: Final[dict[str, LibraryFunction]] = {
    "inverse_dynamics": LibraryFunction(
        {
            "rnea": loops.on_trees(spanning_tree_forces, "rnea"),
            "rnea_spatial": _forces_alone(algorithms.rnea_spatial),
            "rnea_common_frame": textbook("inverse_dynamics_common_frame"),
            "luh_walker_paul": _forces_alone(textbook("luh_walker_paul")),
            "liu_jain": _forces_alone(textbook("liu_jain")),
            "balafoutis_patel": _forces_alone(textbook("balafoutis_patel")),
            "lagrange": textbook("inverse_dynamics_by_jacobians"),
            "closed_form": textbook("inverse_dynamics_closed_form"),
            **loops.INVERSE_METHODS,
        },
        ("q", "v", "a"),
        frame_free=True,
        loops=("rnea",),
        automatic=algorithms.inverse_dynamics,
        preconditions=(KEEPS_CONSTRAINTS, WITHIN_REACH),
    ),
    "forward_dynamics": LibraryFunction(
        {
            name: functools.partial(algorithms.forward_dynamics, method=name)
            for name in (*TREE_METHODS, *loops.METHODS)
        }
        | {
            "divide_and_conquer": gears.with_couplings(textbook("divide_and_conquer")),
            "aba_inverse": gears.with_couplings(textbook("forward_dynamics_by_inverse_inertias")),
            "aba_constraint_space": gears.with_couplings(textbook("forward_dynamics_in_constraint_space")),
            "projection": textbook("forward_dynamics_by_projection"),
            "hamiltonian": geometry.forward_dynamics_hamiltonian,
            "gauss": geometry.forward_dynamics_gauss,
        },
        ("q", "v", "tau"),
        frame_free=True,
        loops=("aba", "aba_spatial"),
        automatic=algorithms.forward_dynamics,
        preconditions=HAS_INVERSE,
    ),
    "inertial_forces": LibraryFunction(
        {"rnea": algorithms.differential_inverse_dynamics}, ("q", "a"), frame_free=True, loops=("rnea",)
    ),
    "mass_matrix": LibraryFunction(
        {
            "crba": square(algorithms.mass_matrix),
            "rnea_columns": square(algorithms.mass_matrix_by_columns),
            "crba_common_frame": square(algorithms.crba_common_frame),
            "jacobians": square(textbook("mass_matrix_by_jacobians")),
        },
        ("q",),
        frame_free=True,
    ),
    "inverse_mass_matrix": LibraryFunction(
        {"ltdl": square(algorithms.inverse_mass_matrix)},
        ("q",),
        frame_free=True,
        preconditions=HAS_INVERSE,
    ),
    "bias_forces": LibraryFunction(
        {"rnea": algorithms.bias_forces}, ("q", "v"), frame_free=True, loops=("rnea",)
    ),
    "gravity_forces": LibraryFunction(
        {"rnea": algorithms.gravity_forces}, ("q",), frame_free=True, loops=("rnea",)
    ),
    "coriolis_forces": LibraryFunction(
        {"rnea": algorithms.coriolis_forces}, ("q", "v"), frame_free=True, loops=("rnea",)
    ),
    "passive_forces": LibraryFunction({"joints": algorithms.passive_forces}, ("q", "v")),
    "forward_kinematics": LibraryFunction({"tree": _rotations_translations}, ("q",)),
    "jacobian": LibraryFunction({"tree": algorithms.jacobian}, ("q",)),
    "jacobian_rate": LibraryFunction({"tree": algorithms.jacobian_rate}, ("q", "v")),
    "point_motion": LibraryFunction({"tree": _frame_motion}, ("q", "v", "a")),
    "kinetic_energy": LibraryFunction({"tree": algorithms.kinetic_energy}, ("q", "v"), frame_free=True),
    "potential_energy": LibraryFunction({"tree": algorithms.potential_energy}, ("q",)),
    "center_of_mass": LibraryFunction({"tree": algorithms.center_of_mass}, ("q",)),
    "centroidal_momentum": LibraryFunction({"tree": algorithms.centroidal_momentum}, ("q", "v")),
    "centroidal_momentum_matrix": LibraryFunction({"tree": algorithms.centroidal_momentum_matrix}, ("q",)),
    "integrate": LibraryFunction({"manifold": configuration.integrate}, ("q", "dv")),
    "difference": LibraryFunction({"manifold": configuration.difference}, ("q0", "q1")),
    "normalize": LibraryFunction(
        {"manifold": configuration.normalize},
        ("q",),
        preconditions=(CAN_BE_NORMALIZED,),
        unit_quaternions=False,
    ),
    "step": LibraryFunction(
        {"tree": functools.partial(algorithms.step, passive=True)},
        ("q", "v", "tau", "dt"),
        frame_free=True,
        preconditions=HAS_INVERSE,
    ),
}
