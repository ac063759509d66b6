"""The one list: every algorithm and every public function, with the arguments it is tested on.

A new algorithm is enrolled by one line in the file of its subject; `test_enrolment.py` fails without it.
"""

from __future__ import annotations

from tests.conformance.enrolled import (
    assembly,
    constraints,
    contact,
    derivatives,
    geometry,
    guenter_rose,
    hybrid,
    iteration,
    loops,
    recursion,
    regressor,
    trees,
)
from tests.conformance.enrolling import Enrolled, flat

from dalembert.compiler.library import FUNCTIONS

__all__ = ["ENROLLED", "PUBLIC_METHODS", "STRUCTURE", "Enrolled", "flat"]

SUBJECTS = (
    trees, constraints, loops, assembly, hybrid, recursion, geometry, regressor, guenter_rose, derivatives,
    iteration, contact,
)  # fmt: skip

ENROLLED: tuple[Enrolled, ...] = tuple(entry for subject in SUBJECTS for entry in subject.ENROLLED)

STRUCTURE = {name: why for subject in SUBJECTS for name, why in subject.STRUCTURE.items()}
"""Functions of `dalembert.algorithms` that compute with no scalar, and why; they have tests of their own."""

PUBLIC_METHODS = {(name, method) for name, entry in FUNCTIONS.items() for method in entry.methods}
