"""Couplings: which coordinates are independent, and how the others follow them.

A coupling sum_j k_j q_j + offset = 0 is solved for its dependent joint d,

    q_d = -(offset + sum_{j != d} k_j q_j) / k_d                                              (1)

and dependents inside (1) are replaced by their own relations, so that every dependent coordinate becomes an
affine function of independent ones: q_full = G q + g with constant G (Featherstone 2008 section 9.6).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dalembert.errors import ModelError, UnknownNameError
from dalembert.model.body import Body, Dependence
from dalembert.model.checks import is_finite, require_known
from dalembert.model.elements import Coupling
from dalembert.model.joints import Joint
from dalembert.model.user_constraints import transfer_constraint

if TYPE_CHECKING:
    from dalembert.model.model import Model

__all__ = ["check_couplings", "checked_coupling", "expansion", "place_coordinates", "uncouple"]

Relation = tuple[dict[str, float], float]
"""The ratios to independent joints by name, and the offset."""


def checked_coupling(
    name: str, coefficients: Mapping[str, float], offset: float, dependent: str | None
) -> Coupling:
    """Return a coupling of joints by name; the last joint is the dependent one unless `dependent` names
    another.
    """
    what, terms = f'coupling "{name}"', dict(coefficients)
    if len(terms) < 2:
        raise ModelError(
            f"{what} needs two joints or more, {len(terms)} given; to fix one joint use model.lock"
        )
    for joint, k in terms.items():
        if not is_finite(k) or k == 0.0:
            raise ModelError(
                f'{what}: the coefficient of joint "{joint}" is {k!r}; give a finite number, not zero'
            )
    if not is_finite(offset):
        raise ModelError(f"{what}: offset is {offset!r}; give a finite number")
    chosen = list(terms)[-1] if dependent is None else dependent
    if chosen not in terms:
        raise UnknownNameError(f"{what}: {UnknownNameError.of('dependent joint', chosen, terms)}")
    return Coupling(name, tuple((joint, float(k)) for joint, k in terms.items()), float(offset), chosen)


def check_couplings(couplings: Iterable[Coupling], joints: Mapping[str, Joint]) -> list[Coupling]:
    """Return the couplings after checking that each makes a different joint of one degree of freedom
    dependent.
    """
    taken: dict[str, str] = {}
    for coupling in couplings:
        for joint, _ in coupling.coefficients:
            kind = require_known(joints, joint, f'coupling "{coupling.name}"', "joint")
            if (kind.nq, kind.nv) != (1, 1):
                raise ModelError(
                    f'coupling "{coupling.name}": joint "{joint}" is of kind {kind.kind} with {kind.nv} '
                    "degrees of freedom; only joints of one degree can be coupled"
                )
        dependent = coupling.dependent
        if dependent in taken:
            raise ModelError(
                f'couplings "{taken[dependent]}" and "{coupling.name}" both make joint "{dependent}" '
                "dependent; choose another one with dependent=…"
            )
        taken[dependent] = coupling.name
    return list(couplings)


def place_coordinates(bodies: Sequence[Body], couplings: Sequence[Coupling] = ()) -> list[Body]:
    """Return the bodies with their slices of q and v, in body order; dependent joints have empty slices."""
    relations = _solve(couplings)
    nq = nv = 0
    slices: dict[str, tuple[slice, slice]] = {}
    for body in bodies:
        q, v = (0, 0) if body.joint_name in relations else (body.nq, body.nv)
        slices[body.joint_name] = slice(nq, nq + q), slice(nv, nv + v)
        nq, nv = nq + q, nv + v
    placed = []
    for body in bodies:
        q_slice, v_slice = slices[body.joint_name]
        dependence = None
        if body.joint_name in relations:
            ratios, offset = relations[body.joint_name]
            terms = tuple((slices[j][0].start, slices[j][1].start, ratio) for j, ratio in ratios.items())
            dependence = Dependence(terms, offset)
        placed.append(dataclasses.replace(body, q_slice=q_slice, v_slice=v_slice, dependence=dependence))
    return placed


def uncouple(model: Model) -> Model:
    """Return the same system with the coordinates of all joints in q and v."""
    from dalembert.model.values import rebuilt

    if not model.couplings:
        return model
    if model.closure is not None:
        raise ModelError(
            "a model with a loop closure q = gamma(y) cannot be uncoupled: gamma knows the coupled q only; "
            "put the coupling into gamma"
        )
    return rebuilt(
        model,
        bodies=place_coordinates(list(model.bodies)),
        couplings=(),
        constraints=[
            dataclasses.replace(item, function=transfer_constraint(item, model, lambda name: name))
            for item in model.constraints
        ],
    )


def expansion(model: Model) -> tuple[list[list[float]], list[float]]:
    """Return (G, g) of q_full = G q + g: G is nv_full x nv, g has nv_full entries."""
    G, g = [], []
    for body in model.bodies:
        for k in range(body.nv):
            row = [0.0] * model.nv
            if body.dependence is None:
                row[body.v_slice.start + k] = 1.0
                g.append(0.0)
            else:
                for _, place, ratio in body.dependence.terms:
                    row[place] = row[place] + ratio
                g.append(body.dependence.offset)
            G.append(row)
    return G, g


def _solve(couplings: Sequence[Coupling]) -> dict[str, Relation]:
    """Express every dependent joint by independent ones, by (1) and substitution."""
    waiting = {coupling.dependent: coupling for coupling in couplings}
    solved: dict[str, Relation] = {}
    while waiting:
        ready = [
            coupling
            for coupling in waiting.values()
            if not any(j in waiting and j != coupling.dependent for j, _ in coupling.coefficients)
        ]
        if not ready:
            names = ", ".join(f'"{coupling.name}"' for coupling in waiting.values())
            raise ModelError(
                f"the couplings {names} depend on each other in a cycle; choose other dependent joints "
                "(dependent=…), so that each follows joints that do not follow it"
            )
        for coupling in ready:
            solved[coupling.dependent] = _relation(coupling, solved)
            del waiting[coupling.dependent]
    return solved


def _relation(coupling: Coupling, solved: Mapping[str, Relation]) -> Relation:
    """Return (1) with the dependent joints on its right side substituted."""
    k = dict(coupling.coefficients)
    k_d = k.pop(coupling.dependent)
    ratios: dict[str, float] = {}
    offset = -coupling.offset / k_d
    for joint, k_j in k.items():
        inner, inner_offset = solved.get(joint, ({joint: 1.0}, 0.0))
        offset -= k_j * inner_offset / k_d
        for name, ratio in inner.items():
            ratios[name] = ratios.get(name, 0.0) - k_j * ratio / k_d
    return ratios, offset + 0.0
