"""Contact and impact: geometry, compliant surfaces and time steps.

The laws of Featherstone 2008 chapter 11 word for word are in `dalembert.textbook`.
"""

import importlib
from typing import Any

from dalembert.contact.compliant import (
    CompliantForces,
    CompliantLaw,
    Hertz,
    LinearSurface,
    PatchState,
    SeriesSpring,
    Surface,
    TwoSurfaces,
    compliant_forces,
    friction_force,
    lumped,
    patch_rate,
    patches_after,
    patches_at_rest,
    relaxed,
)
from dalembert.contact.law import Law
from dalembert.contact.options import Compliant, Rigid
from dalembert.contact.pairs import ContactPair, pairs_of
from dalembert.host import moved_names

__all__ = [
    "Compliant", "CompliantForces", "CompliantLaw", "ContactPair", "Distances", "GapRates", "Hertz",
    "Law", "LinearSurface", "PatchState", "Rigid", "SeriesSpring", "Surface", "TwoSurfaces",
    "compliant_forces", "distances", "friction_force", "gap_rates", "lumped", "pairs_of",
    "patch_rate", "patches_after", "patches_at_rest", "relaxed",
]  # fmt: skip

_COMPILED = ("Distances", "GapRates", "distances", "gap_rates")
"""Compiled functions of the shapes of a model, imported on first use: compiling is above this package."""

_CHAPTER_11 = (
    "BodyContact Collision ComplementaritySolution ContactEquations ContactEvent ContactState "
    "DenseStep EdgeEdge EventDrivenMotion GapFunction Impact LeastConstraint PointContact RigidSolver "
    "SpringDamper StepSolver VertexFace apply_impulse body_contact body_contacts body_impulse "
    "body_mobility collide collide_bodies collide_bodies_sticking collide_sticking contact_dynamics "
    "contact_equations contact_normal contact_states dense_step disc_contacts feature_gaps "
    "fitted_step least_constraint reduce_contacts shape_gaps simulate_events solve_force_qp solve_lcp "
)
_find_moved = moved_names(__name__, {"dalembert.textbook": _CHAPTER_11.split()})


def __getattr__(name: str) -> Any:
    if name in _COMPILED:
        return getattr(importlib.import_module("dalembert.simulation.distances"), name)
    return _find_moved(name)
