"""The plan of a simulated step: its options, arguments, carried values, results and identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast, final

import numpy as np

from dalembert.algorithms.stepping import VELOCITY_FIRST
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler import alike_trees
from dalembert.compiler.recording import RecordedFunction, record_function
from dalembert.compiler.rollout_execution import CompiledRollout
from dalembert.contact.collision import AXIS_NUMBERS, Scene
from dalembert.contact.compliant import LinearSurface, States, Surface
from dalembert.contact.law import Law
from dalembert.contact.options import Compliant, Rigid
from dalembert.contact.pairs import ContactPair
from dalembert.contact.step import root_trees
from dalembert.errors import DtypeError, ShapeError
from dalembert.model.model import Model
from dalembert.scalar import Scalar, is_zero
from dalembert.simulation.actuator_drive import ActuatorDrive
from dalembert.simulation.distances import pairs_key
from dalembert.simulation.drives import Drive, Policy, recorded_policy
from dalembert.simulation.energy_watch import EnergyWatch
from dalembert.simulation.prescription import Prescription
from dalembert.simulation.sensing import NO_SENSORS, SensorSet

DEFAULT_INTEGRATOR = "midpoint"
"""The integrator of motion without contact: of order two for rotations, and stable with stiff damping."""

KEPT_POINTS, KEPT_POINTS_PER_FIGURE, KEPT_POINTS_PER_BODY = 16, 8, 2
"""Touching points that a sample may have unless `nearest` says so: a stack of n boxes has 8 n; a figure that
lies on the ground and on itself fewer than one for each two bodies (the bundled humanoid 24 of 40). Where a
pair of shapes has more points than that, each body counts with these: of 256 ANYmals that began folded at
random, their parts in each other, 33 had more than 50 points, none more than 141."""

FEW_POINTS = 128
"""Points up to which the samples of a block count as alike. With 4 lanes instead of 8, rigid steps of
Gymnasium's humanoid (138 points) are 13 % faster, those of dm_control's cheetah (35 points) 12 % slower."""

KEPT_AXES_PER_BODY = 2
"""Separated pairs for each body whose axes a sample remembers: Talos, limp on the ground, has 18 such pairs
and 33 bodies. The others are searched again in each step."""


@final
@dataclass(frozen=True, eq=False)
class StepPlan:
    """The options of a step, and the quantities that it records.

    `policy`: gives tau, or `drive`, motors or actuators; it is an argument otherwise; `prescription`: joints
    that move as given; `external_frame`: that of the external forces, if there are any; `record`: whether
    contact points are recorded; `work`: whether their work is; `loads`: whether the sums of contact forces on
    bodies are; `resets`: whether samples may begin anew; `law_numbers`: options of the contact law that are
    arguments, "contact.stiffness" and the like; `watch`: whether energy is watched, where that is
    possible; `sensors`: what is measured at the end of the steps that are kept, by name.
    """

    model: Model
    integrator: str = DEFAULT_INTEGRATOR
    contact: Rigid | Compliant | Law | None = None
    pairs: tuple[ContactPair, ...] = ()
    policy: Policy | None = None
    drive: Drive | ActuatorDrive | None = None
    prescription: Prescription | None = None
    external_frame: str | None = None
    record: bool = False
    work: bool = False
    loads: bool = False
    resets: bool = False
    law_numbers: tuple[str, ...] = ()
    watch: bool = True
    sensors: SensorSet = NO_SENSORS

    @staticmethod
    def of(
        model: Model,
        contact: Rigid | Compliant | Law | None,
        policy: Policy | None,
        drive: Drive | ActuatorDrive | None,
        prescription: Prescription | None,
        **options: Any,
    ) -> StepPlan:
        """Return the plan with these options; one without functions of the caller's is made once, and kept
        with the model."""
        known = contact
        if isinstance(contact, Law) and contact.has_functions:
            known = replace(contact, normal=LinearSurface(1.0, 1.0))
        sensors = options.get("sensors", NO_SENSORS)
        own = any(item is not None and item.has_functions for item in (drive, prescription, sensors))
        if policy is not None or own or known is not contact:
            plain = StepPlan.of(model, known, None, None, None, **options | {"sensors": NO_SENSORS})
            given: dict[str, Any] = {"drive": drive, "prescription": prescription, "sensors": sensors}
            return plain.with_functions(contact=contact, policy=policy, **given)
        key = ("step plan", contact, drive, prescription, *options.values())
        kept: StepPlan | None = model.functions.get(key)
        if kept is None:
            pairs = () if contact is None else contact.pairs_in(model)
            kept = StepPlan(
                model, contact=contact, pairs=pairs, drive=drive, prescription=prescription, **options
            )
            model.functions[key] = kept
        return kept

    @cached_property
    def scene(self) -> Scene:
        """The geometry of the pairs."""
        return Scene.of(self.model, self.pairs)

    @cached_property
    def kept_points(self) -> int:
        """The number of touching points that a sample may have."""
        given = None if self.contact is None else self.contact.nearest
        roots, bodies = len(root_trees(self.model)), len(self.model.bodies)
        per_body = max(KEPT_POINTS_PER_BODY, self.scene.most_points)
        usual = KEPT_POINTS + KEPT_POINTS_PER_FIGURE * roots + per_body * bodies
        return min(self.scene.point_count, usual if given is None else given)

    @cached_property
    def kept_axes(self) -> int:
        """The number of separated pairs whose axes a sample remembers."""
        return min(self.scene.searched_pairs, KEPT_AXES_PER_BODY * len(self.model.bodies))

    @cached_property
    def pairs_digest(self) -> str:
        """A digest of the pairs, part of the name of a kernel."""
        return pairs_key(self.pairs)

    @cached_property
    def is_watched(self) -> bool:
        """True if energy that no work explains is reported: not for joints that are moved as given, in wind,
        nor for integrators that conserve another energy in smooth motion."""
        moved = self.model.time_dependent or self.prescription is not None
        moved = moved or (self.model.fluid is not None and any(self.model.fluid.wind))
        return self.watch and not moved and self.integrator in VELOCITY_FIRST

    @cached_property
    def points(self) -> list[tuple[str, str]]:
        """The names of the pair at each contact point, by number."""
        return self.scene.names(self.model)

    @cached_property
    def resists_turning(self) -> bool:
        """True if any pair has torsional or rolling friction."""
        return any(not is_zero(x) for pair in self.pairs for x in (pair.torsion, pair.rolling))

    @property
    def memory_size(self) -> int:
        """The count of numbers that the law remembers of a point."""
        if isinstance(self.contact, Law):
            return self.contact.order + 3
        return 5 + 3 * self.resists_turning

    @cached_property
    def memory(self) -> list[list[float]]:
        """The memory of contact points before the first step, which is empty."""
        return [[-1.0] + [0.0] * self.memory_size] * self.kept_points

    @cached_property
    def fresh(self) -> dict[str, Any]:
        """The carried values beside the state, before the first step."""
        found: dict[str, Any] = dict.fromkeys(self.carried_results, 0.0)
        if "memory" in found:
            found["memory"] = self.memory
        if "axes" in found:
            found["axes"] = [[-1.0] + [0.0] * (AXIS_NUMBERS - 1)] * self.kept_axes
        if "overlap" in found:
            found["overlap"] = [0.0, -1.0]
        if "energy" in found:
            found["energy"] = [0.0] * len(EnergyWatch._fields)
        if "account" in found:
            found["account"] = [0.0] * len(root_trees(self.model))
        if self.prescription is not None:
            found["driven"] = [0.0] * len(self.prescription.places(self.model))
        if self.drive is not None and self.drive.delay:
            size = self.drive.arguments(self.model)[self.drive.delayed_argument][0]
            found["targets"] = [[0.0] * size] * self.drive.delay
        return found | self.sensors.carried_values(self.model)

    @cached_property
    def initial(self) -> dict[str, Any]:
        """The carried values beside the state, before the first step, as arrays."""
        return {name: np.array(value) for name, value in self.fresh.items() if name not in ("q", "v")}

    @cached_property
    def arguments(self) -> tuple[ArrayArgument, ...]:
        """The arguments of a step after the model, in order."""
        model = self.model
        shapes: dict[str, tuple[int, ...]] = {name: np.shape(value) for name, value in self.fresh.items()}
        shapes |= {"q": (model.nq,), "v": (model.nv,)}
        if self.drive is not None:
            shapes |= self.drive.arguments(model)
        elif self.policy is None:
            shapes["tau"] = (model.nv,)
        if self.prescription is not None:
            shapes |= self.prescription.arguments(model)
        if self.external_frame is not None:
            shapes["external_forces"] = (len(model.bodies), 6)
        shapes |= dict.fromkeys(map(law_argument, self.law_numbers), ())
        if self.sensors.draws:
            shapes["stream"] = (2,)
        if self.resets:
            shapes |= {"reset": (), "q_start": (model.nq,), "v_start": (model.nv,)}
        return tuple(ArrayArgument(*item) for item in {**shapes, "start": (), "dt": ()}.items())

    @cached_property
    def argument_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each argument of one sample."""
        return {item.name: item.shape for item in self.arguments}

    @cached_property
    def carried_results(self) -> dict[str, int]:
        """The arguments that are results of the previous step, with their places among the results."""
        names = ["q", "v", "lasted", "fault"]
        names += ["energy"] * self.is_watched
        names += ["memory"] * bool(self.pairs)
        names += ["axes"] * bool(self.kept_axes)
        names += ["overlap"] * (self.watch and bool(self.pairs))
        names += ["account"] * (self.contact is not None)
        names += ["work"] * self.work
        names += ["driven"] * (self.prescription is not None)
        names += ["targets"] * (self.drive is not None and self.drive.delay > 0)
        names += self.sensors.carried_values(self.model)
        return {name: place for place, name in enumerate(names)}

    @cached_property
    def results(self) -> list[str]:
        """The names of the results, in order."""
        names = list(self.carried_results)
        chosen = (self.policy, self.drive, self.prescription)
        names += ["tau"] * any(item is not None for item in chosen)
        names += ["contact"] * (self.record and bool(self.pairs))
        names += ["loads"] * (self.loads and bool(self.pairs))
        return [*names, *self.sensors.results.values()]

    @cached_property
    def kernels(self) -> dict[Any, CompiledRollout]:
        """The kernels of a plan without functions of the caller's."""
        return {}

    @cached_property
    def control_argument(self) -> str | None:
        """The argument that holds the controls, if there is one."""
        return next((name for name in ("tau", "ctrl", "q_ref") if name in self.argument_shapes), None)

    @cached_property
    def is_divergent(self) -> bool:
        """True if the samples of a block do not count as alike."""
        return self.scene.point_count > FEW_POINTS

    def with_functions(self, **given: Any) -> StepPlan:
        """Return the plan with other functions of the caller's, for the same pairs."""
        found = replace(self, **given)
        found.__dict__.update(scene=self.scene, pairs_digest=self.pairs_digest)
        return found

    def record_functions(
        self, parameters: tuple[ArrayArgument, ...]
    ) -> tuple[StepPlan, tuple[RecordedFunction, ...]]:
        """Return the plan with what functions of the caller's compute now, and these functions."""
        model, law, shapes = self.model, self.contact, self.argument_shapes
        policy = None if self.policy is None else recorded_policy(self.policy, model, parameters)
        drive = None if self.drive is None else self.drive.record(model, parameters)
        moved = None if self.prescription is None else self.prescription.record(model, parameters)
        functions = (policy,) if policy is not None else () if drive is None else drive.functions
        functions = (*functions, *(() if moved is None else moved.functions))
        if isinstance(law, Law) and law.has_functions:
            law = record_law(law, model, parameters)
            functions = (*functions, *cast(RecordedSurface, law.normal).functions)
        read = {"controls": self.control_argument or "", "external": "external_forces"}
        given = {name: shapes[argument] for name, argument in read.items() if argument in shapes}
        sensors = self.sensors.record(model, given, parameters)
        functions = (*functions, *sensors.functions)
        if not functions:
            return self, ()
        own: dict[str, Any] = {"prescription": moved, "sensors": sensors}
        return self.with_functions(contact=law, policy=policy, drive=drive, **own), functions

    @property
    def identity(self) -> tuple[object, ...]:
        """The options that tell kernels of a model from each other, beside functions of the caller's."""
        drive = self.drive
        return (
            self.integrator,
            _law_identity(self.contact),
            self.pairs_digest,
            self.kept_points,
            self.external_frame,
            self.record,
            self.work,
            self.loads,
            self.resets,
            self.law_numbers,
            self.is_watched,
            alike_trees.MIN_ALIKE_VARIABLES,
            self.policy is not None,
            None if drive is None else (drive.identity, *drive.arguments(self.model)),
            None if self.prescription is None else self.prescription.identity,
            self.sensors.identity,
        )


def law_argument(name: str) -> str:
    """Return the name of a contact law's option among the arguments of a step."""
    return f"contact.{name}"


def _law_identity(law: Rigid | Compliant | Law | None) -> object:
    """Return what tells a contact law from others; functions of the caller's are told by their digests."""
    if isinstance(law, Law) and law.has_functions:
        return "own law", law.order, replace(law, normal=LinearSurface(1.0, 1.0)).settings
    return None if law is None else law.settings


# Contact laws of the caller's: traced by themselves before each use, like policies.

NO_MODEL = cast(Any, None)
"""Recorded laws are functions of numbers alone."""


@final
@dataclass(frozen=True)
class RecordedSurface(Surface):
    """A surface of the caller's as it computes now: f with its derivatives, and its states after a step."""

    count: int
    forces: RecordedFunction
    states: RecordedFunction | None

    @property
    def order(self) -> int:
        return self.count

    @property
    def functions(self) -> tuple[RecordedFunction, ...]:
        """The recorded functions."""
        return (self.forces,) if self.states is None else (self.forces, self.states)

    def force(self, z: States, p: Scalar, p_rate: Scalar) -> Scalar:
        return self.tangent(z, p, p_rate)[0]

    def tangent(self, z: States, p: Scalar, p_rate: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        f, by_p, by_rate = self.forces(NO_MODEL, p, p_rate, *([list(z)] if self.count else []))
        return f, by_p, by_rate

    def rate(self, z: States, p: Scalar, p_rate: Scalar) -> list[Scalar]:
        raise NotImplementedError("steps of a rollout use the states after a step")

    def after(self, z: States, p: Scalar, p_rate: Scalar, dt: Scalar) -> list[Scalar]:
        return [] if self.states is None else self.states(NO_MODEL, p, p_rate, list(z), dt)


def record_law(law: Law, model: Model, parameters: Sequence[ArrayArgument]) -> Law:
    """Return a law with what the caller's functions compute now."""
    surface, order = law.surface, law.order
    point = [ArrayArgument("gap", ()), ArrayArgument("rate", ())]
    states = [ArrayArgument("states", (order,))] if order else []

    def forces(_: Model, p: Scalar, p_rate: Scalar, z: Sequence[Scalar] = ()) -> list[Scalar]:
        found = surface.tangent(list(z), p, p_rate)
        if isinstance(found[0], str | complex | list | tuple | dict | None):
            raise DtypeError(f"Law: the normal force is {found[0]!r}; return one number")
        return list(found)

    def after(_: Model, p: Scalar, p_rate: Scalar, z: Sequence[Scalar], dt: Scalar) -> list[Scalar]:
        found = list(surface.after(list(z), p, p_rate, dt))
        if len(found) != order:
            raise ShapeError(f"Law: the surface has {len(found)} states after a step, and order {order}")
        return found

    owner: Any = law.normal
    source = owner.force if isinstance(owner, Surface) else owner
    force = record_function("normal force", source, model, [*point, *states], parameters, forces)
    kept = None
    if order:
        given = [*point, *states, ArrayArgument("dt", ())]
        kept = record_function("states of a surface", owner.after, model, given, parameters, after)
    return replace(law, normal=RecordedSurface(order, force, kept))
