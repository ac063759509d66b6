"""A watch for energy that no work explains.

Steps that move positions by the new velocities keep not T + V in smooth motion but, to second order,

    E = T + V - h/2 (v . dV/dq - v_f . dV_g/dq)                                                          (1)

(Hairer, Lubich & Wanner 2006, section IX.3), V of weights and springs, V_g of weights alone; v_f are the
velocities of centres of mass that move by the mean of their velocities, as in steps with contact
(`contact.step_terms`), else zero. Motors and external forces put the work W into a step; damping, friction,
limits and contact only take. So what E rises above its value at the start and the sum of max(W, 0) comes
from errors alone:

    gain = max over steps of E - E_0 - sum max(W, 0)                                                     (2)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from dalembert.algorithms.applied_forces import passive_forces, spring_energy
from dalembert.algorithms.dense import inner_product
from dalembert.algorithms.energy_momentum import potential_energy, total_mass
from dalembert.algorithms.inverse_dynamics import gravity_forces
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, maximum, select, sqrt

STEPS_BETWEEN_CHECKS: Final = 32
"""Steps from one computation of E to the next; it is computed at the first step, too, and when joints turn
fast. It costs a fifth of a step."""

REPORTED_FRACTION: Final = 0.015
"""Gains above this fraction of the peak kinetic energy and the work put in are reported."""

REPORTED_LIFT: Final = 0.0005
"""Gains below the work of lifting all bodies by this [m] are not reported: positions that are corrected,
where bodies overlap, are lifted by as much."""


class EnergyWatch(NamedTuple):
    """The values carried from step to step: E_0, sum max(W, 0), the gain, the peak kinetic energy, the gain
    where it is reported, else zero [J], and the number of steps until the next check."""

    start: Scalar
    work: Scalar
    gain: Scalar
    peak: Scalar
    reported: Scalar
    left: Scalar


def update_watch(
    watch: EnergyWatch,
    model: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    kinetic: Scalar,
    dt: Scalar,
    first: Scalar,
    falling: Sequence[Scalar],
) -> EnergyWatch:
    """Return the watch with the energy in the state (q, v), where a step of dt [s] begins; `kinetic`: T
    there; `first`: whether the step is a sample's first; `falling`: v_f `(nv,)`."""
    energy = kinetic + _beside_kinetic(model, q, v, dt, falling)
    start = select(first, energy, watch.start)
    gain, peak = maximum(watch.gain, energy - start - watch.work), maximum(watch.peak, kinetic)
    weight = total_mass(model) * sqrt(model.gravity.dot(model.gravity))
    least = REPORTED_FRACTION * (peak + watch.work) + REPORTED_LIFT * weight
    reported = select(gain > least, gain, 0.0)
    return EnergyWatch(start, watch.work, gain, peak, reported, float(STEPS_BETWEEN_CHECKS))


def _beside_kinetic(
    model: Tree, q: Sequence[Scalar], v: Sequence[Scalar], dt: Scalar, falling: Sequence[Scalar]
) -> Scalar:
    """Return E - T of (1)."""
    springs, weights = passive_forces(model, q, [0.0] * model.nv), gravity_forces(model, q)
    power = inner_product(v, [g - f for g, f in zip(weights, springs, strict=True)])
    power = power - inner_product(falling, weights)
    return potential_energy(model, q) + spring_energy(model, q) - 0.5 * dt * power


def reported_gain(watch: Any) -> Any:
    """Return the gains [J] that are reported, zero elsewhere; `watch (…, 6)`: an array of what is carried."""
    return watch[..., EnergyWatch._fields.index("reported")]
