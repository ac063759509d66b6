"""Couplings: which coordinates are independent, and how the others follow them.

A coupling sum_j k_j q_j + offset = 0 is solved for its dependent joint d,

    q_d = -(offset + sum_{j != d} k_j q_j) / k_d                                              (1)

and dependents inside (1) are replaced by their own relations, so that every dependent coordinate becomes an
affine function of independent ones: q_full = G q + g with constant G (Featherstone 2008 section 9.6).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dalembert.errors import ModelError, UnknownNameError
from dalembert.model.body import Body, Coupling, Dependence
from dalembert.model.checks import is_finite, require_known
from dalembert.model.joints import Joint

if TYPE_CHECKING:
    from dalembert.model.model import Model


Relation = tuple[dict[str, float], float]
"""The ratios to independent joints by name, and the offset."""


def checked_coupling(
    name: str, coefficients: Mapping[str, float], offset: float, dependent: str | None
) -> Coupling:
    """Return a checked coupling of joints by name; `dependent` defaults to the last joint."""
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
    """Return the couplings after checking that each makes another one-DoF joint dependent."""
    taken: dict[str, str] = {}
    for coupling in couplings:
        named = [joint for joint, _ in coupling.coefficients]
        require_single_freedoms(named, joints, f'coupling "{coupling.name}"')
        dependent = coupling.dependent
        if dependent in taken:
            raise ModelError(
                f'couplings "{taken[dependent]}" and "{coupling.name}" both make joint "{dependent}" '
                "dependent; choose another one with dependent=…"
            )
        taken[dependent] = coupling.name
    return list(couplings)


def require_single_freedoms(names: Iterable[str], joints: Mapping[str, Joint], what: str) -> None:
    """Refuse unknown joints, and joints of several degrees of freedom, whose positions have no sum."""
    for name in names:
        joint = require_known(joints, name, what, "joint")
        if (joint.nq, joint.nv) != (1, 1):
            raise ModelError(
                f'{what}: joint "{name}" is of kind {joint.kind} with {joint.nv} degrees of freedom; only '
                "joints of one degree can be used here"
            )


def joint_sum(model: Model, terms: Iterable[tuple[str, float]]) -> Dependence:
    """Return the sum of k q over joints of one degree of freedom as a function of independent coordinates."""
    ratios: dict[tuple[int, int], float] = {}
    offset = 0.0
    for name, k in terms:
        body = model.joints[name].body
        own = body.dependence or Dependence(((body.q_slice.start, body.v_slice.start, 1.0),), 0.0)
        offset += k * own.offset
        for place, rate, ratio in own.terms:
            ratios[place, rate] = ratios.get((place, rate), 0.0) + k * ratio
    return Dependence(tuple((*places, ratio) for places, ratio in ratios.items()), offset)


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
            k = dict(coupling.coefficients)
            k_d = k.pop(coupling.dependent)
            ratios: dict[str, float] = {}
            offset = -coupling.offset / k_d
            for joint, k_j in k.items():
                inner, inner_offset = solved.get(joint, ({joint: 1.0}, 0.0))
                offset -= k_j * inner_offset / k_d
                for name, ratio in inner.items():
                    ratios[name] = ratios.get(name, 0.0) - k_j * ratio / k_d
            solved[coupling.dependent] = ratios, offset + 0.0
            del waiting[coupling.dependent]
    return solved


# Minimal loop clusters: loops that share no joint with other loops (Featherstone 2008 section 8.9).
#
# K of the whole system is block-diagonal by clusters, up to the order of its rows and columns, and so is G.


class LoopCluster(NamedTuple):
    """Loop joints and user constraints that belong together, and the tree joints that take part in them.

    `bodies`: the bodies of those joints, in order; `velocities`: the indices in v, with couplings followed to
    the joints that drive them; `constraints`: names, in the order of the rows of K.
    """

    constraints: tuple[str, ...]
    joints: tuple[str, ...]
    bodies: tuple[int, ...]
    velocities: tuple[int, ...]


def loop_clusters(model: Model) -> tuple[LoopCluster, ...]:
    """Return the minimal loop clusters in the order of their first loops.

    A loop's joints are those on the paths from its root to its two bodies. Two loops that a coupling links
    are in one cluster. A user constraint may involve any joint, so it is treated as a function of every joint
    of the model and merges all clusters.
    """
    parts: list[tuple[list[str], set[int]]] = []
    for name, bodies in _rows(model):
        touched = [part for part in parts if _places(model, part[1]) & _places(model, bodies)]
        merged = ([*(n for part in touched for n in part[0]), name], bodies.union(*(p[1] for p in touched)))
        where = parts.index(touched[0]) if touched else len(parts)
        parts = [part for part in parts if part not in touched]
        parts.insert(where, merged)
    order = {name: i for i, (name, _) in enumerate(_rows(model))}
    return tuple(
        LoopCluster(
            tuple(sorted(names, key=order.__getitem__)),
            tuple(model.bodies[i].joint_name for i in sorted(bodies)),
            tuple(sorted(bodies)),
            tuple(sorted(_places(model, bodies))),
        )
        for names, bodies in parts
    )


def _rows(model: Model) -> list[tuple[str, set[int]]]:
    """Return each constraint and the bodies whose joints take part in it."""
    rows = [
        (loop.name, set(model.support(loop.predecessor) ^ model.support(loop.successor)))
        for loop in model.loops
    ]
    everything = {body.index for body in model.bodies if body.nv}
    return rows + [(item.name, set(everything)) for item in model.constraints]


def _places(model: Model, bodies: set[int]) -> set[int]:
    """Return the indices in v of the joints, or of the joints that they follow."""
    places: set[int] = set()
    for i in bodies:
        body = model.bodies[i]
        if body.dependence is not None:
            places |= {place for _, place, _ in body.dependence.terms}
        else:
            places |= set(range(body.v_slice.start, body.v_slice.stop))
    return places
