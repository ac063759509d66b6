"""One simulated step as a traced function: control, contact, dynamics, integration, and a look at the result.

    (q, v), carried things, tau, dt  ->  (q, v), carried things, what is recorded

Beside the state a step carries `lasted`, the steps that a sample has taken, which with dt is its clock;
`fault`, zero as long as all is well, else the number of a cause; with contact the memory of what
points bore; and the work of contact, if it is asked for. A sample whose step fails stays where
it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.stepping import step
from dalembert.arguments import ArrayArgument
from dalembert.contact.candidates import Candidate
from dalembert.contact.chosen_points import remembered, signs_of, with_which
from dalembert.contact.compliant_step import CompliantStep, fresh_memory, step_compliant
from dalembert.contact.options import Compliant, Rigid
from dalembert.contact.pairs import ContactPair
from dalembert.contact.selection import Selected, Selection, selection_of
from dalembert.contact.step_terms import Motor
from dalembert.contact.stepping import ContactStep, contact_step
from dalembert.model.model import Model
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar, absolute, logical_and, select
from dalembert.simulation.controls import Policy, forces_of
from dalembert.simulation.drives import Drive
from dalembert.spatial import Force, Transform, Vec3

__all__ = ["CAUSES", "StepPlan"]

FASTEST = 1e6
"""A velocity variable beyond this [rad/s, m/s] is no motion but a simulation that has blown up."""

FARTHEST = 1e12
"""Likewise a position variable [rad, m]."""

CAUSES = (
    "",
    "controls are not finite",
    "the step is not finite",
    f"velocities beyond {FASTEST:.0e}: the simulation has blown up; take smaller steps or softer gains",
    "external forces are not finite",
    "more points touch than a step looks at: between moving bodies the `nearest` of its contact option, "
    "between a shape and boxes of the world those of four boxes",
)
"""What the numbers in `fault` mean."""


class Outcome(NamedTuple):
    """The state after a step, the joint forces in it and, with contact, impulses at the points and their
    work."""

    q: Sequence[Scalar]
    v: Sequence[Scalar]
    tau: Sequence[Scalar]
    impulses: Sequence[Vec3] = ()
    memory: Sequence[Sequence[Scalar]] = ()
    work: Scalar = 0.0


@final
@dataclass(frozen=True, eq=False)
class StepPlan:
    """What one step does, and what it records.

    `policy`: gives tau, or `drive`, the motors of joints; it is an argument otherwise; `external_frame`: that
    of the external forces, if there are any; `record`: whether contact points are recorded; `work`: whether
    their work is; `loads`: whether the sums of contact forces on bodies are; `resets`: whether samples may
    begin anew.
    """

    model: Model
    integrator: str = "semi_implicit"
    contact: Rigid | Compliant | None = None
    pairs: tuple[ContactPair, ...] = ()
    policy: Policy | None = None
    drive: Drive | None = None
    external_frame: str | None = None
    record: bool = False
    work: bool = False
    loads: bool = False
    resets: bool = False

    @cached_property
    def selection(self) -> Selection:
        """Which pairs are looked at always, and which where they are nearest."""
        return selection_of(self.model, self.pairs, self.contact and self.contact.nearest)

    @property
    def points(self) -> list[tuple[str, str]]:
        """The names of what meets at each contact point that is always looked at; chosen ones follow."""
        return self.selection.names(self.model)

    @property
    def memory(self) -> list[list[float]]:
        """What contact points remember before the first step; where some are chosen, also which ones."""
        which = [-1.0] if self.selection.chosen else []
        return [[*row, *which] for row in self._fresh(len(self.points) + self.selection.chosen)]

    def _fresh(self, count: int) -> list[list[float]]:
        return fresh_memory(count) if isinstance(self.contact, Compliant) else [[0.0] * 4] * count

    @property
    def arguments(self) -> tuple[ArrayArgument, ...]:
        """Those of `__call__` after the tree, in order."""
        model = self.model
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(self.carried, ())
        shapes |= {"q": (model.nq,), "v": (model.nv,)}
        if "memory" in shapes:
            shapes["memory"] = (len(self.memory), len(self.memory[0]))
        if self.drive is not None:
            shapes |= self.drive.arguments(model)
        elif self.policy is None:
            shapes["tau"] = (model.nv,)
        if self.external_frame is not None:
            shapes["external_forces"] = (len(model.bodies), 6)
        if self.resets:
            shapes |= {"reset": (), "q_start": (model.nq,), "v_start": (model.nv,)}
        return tuple(ArrayArgument(*item) for item in {**shapes, "start": (), "dt": ()}.items())

    def argument_rank(self, name: str) -> int:
        """The number of axes of an argument of one sample."""
        return next(len(item.shape) for item in self.arguments if item.name == name)

    @property
    def carried(self) -> dict[str, int]:
        """Arguments that are results of the step before, by their places among the results."""
        names = ["q", "v", "lasted", "fault"]
        names += ["memory"] * bool(self.pairs)
        names += ["work"] * self.work
        return {name: place for place, name in enumerate(names)}

    @property
    def results(self) -> list[str]:
        """The names of the results, in order."""
        names = list(self.carried)
        names += ["tau"] * (self.policy is not None or self.drive is not None)
        names += ["force", "position", "gap"] * (self.record and bool(self.pairs))
        return names + ["loads"] * (self.loads and bool(self.pairs))

    def __call__(self, model: Model, *values: Any) -> tuple[Any, ...]:
        given = dict(zip((item.name for item in self.arguments), values, strict=True))
        if self.resets:
            given |= self._begun_anew(given)
        q, v, dt = given["q"], given["v"], given["dt"]
        time = given["start"] + given["lasted"] * dt
        tau, motors = self._controls(model, given, time)
        poses = forward_kinematics(model, q) if self.pairs or self.external_frame == "center" else None
        seen = self.selection.points(poses, dt) if poses and self.pairs else Selected([], [], 0.0)
        candidates = seen.candidates
        if seen.which:
            given["memory"] = remembered(
                seen.which, given["memory"], self._fresh(1)[0], self.selection.counts
            )
        after = self._step(model, given, tau, motors, time, poses, candidates)
        alive = given["fault"] <= 0.0
        commands = [*tau, *(x for motor in motors for x in (motor.error, motor.v_ref))]
        pushes = [x for six in given.get("external_forces", ()) for x in six]
        fault = select(_bounded(pushes, 1e300), _fault_of(after), 4.0) if pushes else _fault_of(after)
        if seen.which:
            fault = select(logical_and(fault <= 0.0, seen.left_out < 0.0), 5.0, fault)
        fault = select(_bounded(commands, FARTHEST), fault, 1.0)
        good = logical_and(alive, fault <= 0.0)

        def kept(new: Sequence[Scalar], old: Sequence[Scalar]) -> list[Scalar]:
            return [select(good, a, b) for a, b in zip(new, old, strict=True)]

        found: dict[str, Any] = {
            "q": kept(after.q, q),
            "v": kept(after.v, v),
            "lasted": given["lasted"] + select(good, 1.0, 0.0),
            "fault": select(alive, fault, given["fault"]),
            "tau": after.tau,
        }
        if self.pairs:
            rate = select(good, 1.0 / dt, 0.0)
            forces = [[select(good, x * rate, 0.0) for x in impulse.to_list()] for impulse in after.impulses]
            memory = [[select(good, x, 0.0) for x in point] for point in after.memory]
            found |= {
                "memory": with_which(memory, seen.which),
                "force": forces,
                "position": [item.point.position.to_list() for item in candidates],
                "gap": [item.point.gap for item in candidates],
                "loads": _loads(model, candidates, forces),
            }
        if self.work:
            found["work"] = given["work"] + select(good, after.work, 0.0)
        return tuple(found[name] for name in self.results)

    def _begun_anew(self, given: dict[str, Any]) -> dict[str, Any]:
        """What is carried, back at the start where `reset` says so: state, clock, faults, memory, work."""
        again = absolute(given["reset"]) > 0.0
        fresh = {"q": given["q_start"], "v": given["v_start"], "memory": self.memory}

        def chosen(new: Any, old: Any) -> Any:
            if isinstance(new, Sequence):
                return [chosen(a, b) for a, b in zip(new, old, strict=True)]
            return select(again, new, old)

        return {name: chosen(fresh.get(name, 0.0), given[name]) for name in self.carried}

    def _controls(
        self, model: Model, given: dict[str, Any], time: Scalar
    ) -> tuple[Sequence[Scalar], list[Motor]]:
        """Joint forces, and motors beside them."""
        if self.drive is not None:
            return [0.0] * model.nv, self.drive.motors(model, given, time)
        if self.policy is None:
            return given["tau"], []
        return forces_of(self.policy, model, time, given["q"], given["v"]), []

    def _step(
        self,
        model: Model,
        given: dict[str, Any],
        tau: Sequence[Scalar],
        motors: list[Motor],
        time: Scalar,
        poses: PerBody[Transform] | None,
        candidates: list[Candidate],
    ) -> Outcome:
        q, v, dt = given["q"], given["v"], given["dt"]
        external: dict[str, Any] = {}
        if self.external_frame is not None:
            external = {"external_forces": given["external_forces"], "external_frame": self.external_frame}
            if self.external_frame == "center" and poses is not None:
                pushes = _at_centers(model, poses, given["external_forces"])
                external = {"external_forces": pushes, "external_frame": "body"}
        if self.contact is None:
            if self.drive is not None:
                tau = self.drive.stable_forces(model, given, time)
            moved = step(
                aligned(model),
                q,
                v,
                tau,
                dt,
                integrator=self.integrator,
                passive=True,
                time=time if self.model.time_dependent else None,
                stabilization="automatic",
                **external,
            )
            return Outcome(moved.q, moved.v, tau)
        given_to_step: dict[str, Any] = {
            "motors": motors,
            "memory": given["memory"] if self.pairs else None,
            **external,
        }
        law = self.contact
        solved: ContactStep | CompliantStep
        if isinstance(law, Compliant):
            solved = step_compliant(model, q, v, tau, dt, candidates, settings=law.settings, **given_to_step)
        else:
            solved = contact_step(model, q, v, tau, dt, candidates, settings=law.settings, **given_to_step)
        if self.drive is not None:
            tau = self.drive.forces_after(model, motors, solved.v, dt)
        return Outcome(solved.q, solved.v, tau, solved.impulses, solved.memory, solved.work)


def _fault_of(after: Outcome) -> Scalar:
    """The number of what is wrong with a state, zero if nothing is."""
    bounded = logical_and(_bounded(after.q, FARTHEST), _bounded(after.v, FASTEST))
    finite = logical_and(_bounded(after.q, 1e300), _bounded(after.v, 1e300))
    return select(bounded, 0.0, select(finite, 3.0, 2.0))


def _bounded(values: Sequence[Scalar], bound: float) -> Scalar:
    """Whether no value is NaN, infinite or greater than a bound."""
    total: Scalar = 0.0
    for x in values:
        total = total + absolute(x)
    return total <= bound


def _loads(
    model: Model, candidates: Sequence[Candidate], forces: Sequence[Sequence[Scalar]]
) -> list[list[Scalar]]:
    """The sum of contact forces on every body `(n_bodies, 3)` [N]."""
    sums: list[list[Scalar]] = [[0.0, 0.0, 0.0] for _ in model.bodies]
    for item, force in zip(candidates, forces, strict=True):
        for body, sign in signs_of(item, len(model.bodies)):
            sums[body] = [a + b * sign for a, b in zip(sums[body], force, strict=True)]
    return sums


def _at_centers(model: Model, poses: PerBody[Transform], given: Any) -> list[Force]:
    """Forces in body coordinates at the bodies' origins, from (moment, force) along world axes at their
    centres of mass."""
    found = []
    for body, six in zip(model.bodies, given, strict=True):
        R = poses[body].R
        moment, force = R.transposed_times(Vec3(*six[:3])), R.transposed_times(Vec3(*six[3:]))
        found.append(Force(moment + body.inertia.com.cross(force), force))
    return found
