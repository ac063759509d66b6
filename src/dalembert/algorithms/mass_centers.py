"""The precondition of algorithms that compute with centres of mass."""

from __future__ import annotations

from dalembert.errors import ModelError
from dalembert.model.tree import Tree
from dalembert.scalar import literal

__all__ = ["require_centers_of_mass"]


def require_centers_of_mass(tree: Tree, function: str) -> None:
    """Refuse a body without mass that has first or second moments, as `simplify_inertias` makes them: it has
    no centre of mass to describe them by.
    """
    for body in tree.bodies:
        mass, *moments = (literal(x) for x in body.inertia.leaves())
        if mass == 0.0 and any(x is not None and x != 0.0 for x in moments):
            raise ModelError(
                f'{function}: body "{body.name}" has no mass but other inertia, so that it has no centre of '
                "mass, with which this algorithm computes; use another method where there is one, or the "
                "model before simplify_inertias"
            )
