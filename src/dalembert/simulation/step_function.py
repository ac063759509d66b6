"""One simulated step as a traced function: control, contact, dynamics, integration, and checks.

    (q, v), carried values, tau, dt  ->  (q, v), carried values, recorded values

Beside the state a step carries `lasted`, the number of steps that a sample has taken, which with dt is its
clock; `fault`, the number of a cause of failure, or zero; with contact the cached impulses of contact points;
and the work of contact, if it is observed. A sample whose step fails keeps its state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, cast, final

import numpy as np

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.dense import inner_product
from dalembert.algorithms.energy_momentum import kinetic_energy
from dalembert.algorithms.integrators import JointForces
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.kinematics import body_velocities, forward_kinematics, squared_turning_rate
from dalembert.algorithms.open_tree import is_constrained, require_regular_inertia
from dalembert.algorithms.stepping import VELOCITY_FIRST, prescribed_forces, step
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler import alike_trees
from dalembert.compiler.alike_trees import Forest, forest_of
from dalembert.compiler.library import source_digest
from dalembert.compiler.lowering import Recipe
from dalembert.compiler.recording import kept_kernel
from dalembert.compiler.rollout_execution import CompiledRollout, compile_rollout
from dalembert.contact.collision import AXIS_NUMBERS, Scene
from dalembert.contact.compliant import LinearSurface
from dalembert.contact.compliant_step import FIRST_STEP_MARK
from dalembert.contact.contacts import Contacts, recall, remember, with_coefficients
from dalembert.contact.law import Law
from dalembert.contact.options import Compliant, Rigid, with_numbers
from dalembert.contact.pairs import ContactPair, pairs_with_values
from dalembert.contact.prescribed import PrescribedMotion
from dalembert.contact.step import ContactStep, balance_energy, contact_step, root_trees
from dalembert.contact.step_terms import Motor, center_velocities
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import (
    Row,
    Scalar,
    absolute,
    is_zero,
    logical_and,
    logical_or,
    loop,
    maximum,
    minimum,
    select,
)
from dalembert.scalar.row_sets import sum_all
from dalembert.simulation.actuator_drive import ActuatorDrive
from dalembert.simulation.contact_laws import RecordedSurface, recorded_law
from dalembert.simulation.distances import pairs_key
from dalembert.simulation.drives import Drive, Policy, delay_line, forces_of, motor_forces, recorded_policy
from dalembert.simulation.energy_watch import EnergyWatch, update_watch
from dalembert.simulation.prescription import PrescribedStep, Prescription
from dalembert.simulation.sensing import NO_SENSORS, ContactForces, SensorSet, StepEnd
from dalembert.spatial import Vec3

DEFAULT_INTEGRATOR = "midpoint"
"""The integrator of motion without contact: of order two for rotations, and stable with stiff damping."""

FAST_TURN = 0.01
"""Steps in which joints turn by more than this [rad], root of the mean of squares, are balanced: in others
the error of the kinetic energy is below 5e-5 of it."""

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

RECORDED_GAP = 1e-3
"""Points with smaller gaps [m] are recorded."""

MAX_SPEED = 1e6
"""A simulation whose velocity variables exceed this [rad/s, m/s] has blown up."""

MAX_POSITION = 1e12
"""A simulation whose position variables exceed this [rad, m], or joint forces this [N, N m], has blown up."""

OF: Final = {
    **dict.fromkeys(("q", "q_start"), "q"),
    **dict.fromkeys(("v", "v_start", "tau"), "v"),
    "external_forces": "bodies",
    "account": "trees",
}
"""Arguments and results that are given for each variable, body or tree (`alike_trees.KINDS`)."""

REJECTED = "the start is not finite, has a quaternion that is not of unit norm, or has open loops"
"""The cause of samples that are flagged before their first step."""

CAUSES = (
    "",
    "controls are not finite",
    "the step is not finite",
    f"velocities beyond {MAX_SPEED:.0e}: the simulation has blown up; take smaller steps or softer gains",
    "external forces are not finite",
    "more points touch than a step remembers; give the contact option a greater `nearest`",
    REJECTED,
)
"""The cause of failure for each number in `fault`."""


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
        own = any(item is not None and item.has_functions for item in (drive, prescription))
        sensors = options.get("sensors", NO_SENSORS)
        own = own or sensors.has_functions
        if policy is not None or own or known is not contact:
            plain = StepPlan.of(model, known, None, None, None, **options | {"sensors": NO_SENSORS})
            given: dict[str, Any] = {"drive": drive, "prescription": prescription, "sensors": sensors}
            found = replace(plain, contact=contact, policy=policy, **given)
            found.__dict__.update(scene=plain.scene, pairs_digest=plain.pairs_digest)
            return found
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
        """The arguments of `__call__` after the tree, in order."""
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
    def _kernels(self) -> dict[Any, CompiledRollout]:
        """The kernels of a plan without functions of the caller's."""
        return {}

    def kernel(
        self, streams: tuple[str, ...], parameters: tuple[str, ...], dtype: str = "float64"
    ) -> CompiledRollout:
        """Return the kernel of many steps, kept with the model and on disk. Functions of the caller's are
        part of it as what they compute now."""
        given = (streams, parameters, dtype)
        found = self._kernels.get(given)
        if found is not None:
            return found
        model = self.model
        values = tuple(ArrayArgument(name, np.shape(model.value(name))) for name in parameters)
        policy = None if self.policy is None else recorded_policy(self.policy, model, values)
        drive = None if self.drive is None else self.drive.record(model, values)
        moved = None if self.prescription is None else self.prescription.record(model, values)
        functions = (policy,) if policy is not None else () if drive is None else drive.functions
        functions = (*functions, *(() if moved is None else moved.functions))
        law = self.contact
        if isinstance(law, Law) and law.has_functions:
            law = recorded_law(law, model, values)
            functions = (*functions, *cast(RecordedSurface, law.normal).functions)
        sensors = self.sensors.record(model, self._read_shapes, values)
        functions = (*functions, *sensors.functions)
        options = (
            self.integrator,
            _law_identity(law),
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
            policy is not None,
            None if drive is None else (drive.identity, *drive.arguments(model)),
            None if moved is None else moved.identity,
            sensors.identity,
            *given,
        )
        recorded = self
        if functions:
            own: dict[str, Any] = {"prescription": moved, "sensors": sensors}
            recorded = replace(self, contact=law, policy=policy, drive=drive, **own)
        known = () if moved is None else moved.names

        def step(tree: Model, *arrays: Any) -> Any:
            if not is_constrained(tree):
                require_regular_inertia(tree, "rollout", known)
            return recorded(tree, *arrays)

        def made() -> CompiledRollout:
            digests = [function.digest for function in functions]
            text = f"rollout {options} {digests} {model.digest} {source_digest()}"
            identity = hashlib.sha256(text.encode()).hexdigest()
            recipe = Recipe("rollout", step, model, self.arguments, values, identity=identity)
            recipe = replace(recipe, divergent=self.scene.point_count > FEW_POINTS)
            return compile_rollout(recipe, carried=self.carried_results, streams=streams, dtype=dtype)

        key = ("rollout", options)
        if functions:
            return kept_kernel(model, key, functions, made)
        kept: CompiledRollout | None = model.functions.get(key)
        if kept is None:
            kept = model.functions[key] = made()
        self._kernels[given] = kept
        return kept

    def __call__(self, model: Model, *values: Any) -> tuple[Any, ...]:
        whole = dict(zip((item.name for item in self.arguments), values, strict=True))
        given = whole | self._begun_anew(whole) if self.resets else whole
        dt = given["dt"]
        start, lasted = given["start"], given["lasted"]

        def clock(steps: Scalar) -> Scalar:
            """Return the time after that many more steps."""
            return start + (lasted + steps) * dt

        old, moved = given, None
        if self.prescription is not None:
            moved = self.prescription.step(model, given, clock)
            given = given | {"q": moved.q, "v": moved.v}
        q, time, targets = given["q"], clock(0.0), None
        if self.drive is not None and self.drive.delay:
            acting_target, targets = delay_line(given, self.drive.delayed_argument, self.drive.delay)
            given = given | {self.drive.delayed_argument: acting_target}
        tau, motors = self._controls(model, given, time)
        if moved is not None:
            motors = [motor for motor in motors if motor.place not in moved.places]
            tau = [0.0 if k in moved.places else x for k, x in enumerate(tau)]
        tree: Tree = model
        motion = None if moved is None or self.contact is None else moved.motion()
        if self.contact is not None:
            known = frozenset[int]() if motion is None else motion.places
            tree = forest_of(model, dt, [motor.place for motor in motors], known)
        begun = given | {"q": old["q"], "v": old["v"]}
        if isinstance(tree, Forest):
            old, given = self._given_to(tree, whole, given)
            q, tau, motors = given["q"], tree.gather(tau, "v"), tree.gather_motors(motors)
            motion = None if motion is None else tree.gather_prescribed(motion)
        contacts = None
        if self.pairs:
            now = time if model.time_dependent else None
            moving = body_velocities(tree, q, given["v"], time=now)
            poses, first = forward_kinematics(tree, q, time=now), lasted <= 0.0
            axes = [[select(first, -1.0, number), *axis] for number, *axis in given.get("axes", ())]
            contacts = self.scene.contacts(poses, moving, dt, [q, dt], axes, tree)
            pairs = pairs_with_values(self.model, model, self.pairs)
            if any(a is not b for a, b in zip(pairs, self.pairs, strict=True)):
                contacts = with_coefficients(contacts, pairs, self.scene.pair_of_point, [q, dt])
        acting: dict[str, Any] = {}
        if self.external_frame is not None:
            acting = {"external_forces": given["external_forces"], "external_frame": self.external_frame}
        after, applied = self._step(tree, given, tau, motors, time, contacts, acting, moved, motion)
        alive = given["fault"] <= 0.0
        commands = [*tau, *(x for motor in motors for x in (motor.error, motor.v_ref))]
        commands += [] if moved is None else moved.given
        pushes = [x for six in given.get("external_forces", ()) for x in six]
        fault = select(_is_bounded(pushes, 1e300), _fault_of(after), 4.0) if pushes else _fault_of(after)
        if contacts is not None:
            kept, count = self._remember(contacts, after, logical_and(alive, fault <= 0.0), [q, dt])
            fault = select(logical_and(fault <= 0.0, count > float(self.kept_points)), 5.0, fault)
        fault = select(_is_bounded(commands, MAX_POSITION), fault, 1.0)
        good = logical_and(alive, fault <= 0.0)

        def keep_if_good(new: Sequence[Scalar], old: Sequence[Scalar]) -> list[Scalar]:
            return [select(good, a, b) for a, b in zip(new, old, strict=True)]

        found: dict[str, Any] = {
            "q": keep_if_good(after.q, old["q"]),
            "lasted": given["lasted"] + select(good, 1.0, 0.0),
            "fault": select(alive, fault, given["fault"]),
            "tau": applied,
        }
        if contacts is not None:
            rate = select(good, 1.0 / dt, 0.0)
            found["memory"] = kept
            found["axes"] = contacts.axes
            if self.watch:
                found["overlap"] = _deepest(contacts, given["lasted"] <= 0.0, given["overlap"])
            if self.record:
                found["contact"] = self._record_points(contacts, after, rate, [q, dt])
            if self.loads:
                found["loads"] = _loads(model, contacts, after, rate)
        if self.work:
            found["work"] = given["work"] + select(good, after.work, 0.0)
        if targets is not None:
            found["targets"] = targets
        if moved is not None:
            found["driven"] = keep_if_good(moved.velocities_for_next_step, given["driven"])
        known = frozenset[int]() if motion is None else motion.places
        settled = self._balance_energy(tree, given, after, applied, acting, time, known)
        found |= {name: keep_if_good(new, old[name]) for name, new in settled.items()}
        if isinstance(tree, Forest):
            found |= {name: tree.flatten(found[name], OF[name]) for name in OF if name in found}
        if self.sensors.sensors:
            found |= self._read_sensors(model, begun, found, after, contacts, good, clock)
        return tuple(found[name] for name in self.results)

    def _given_to(
        self, tree: Forest, whole: dict[str, Any], given: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arguments `whole` of a step for the trees of a forest, begun anew where they are, and
        the same with the prescribed joints of `given`, which are not among rows."""
        own = {name: tree.gather(value, OF[name]) if name in OF else value for name, value in whole.items()}
        old = own | self._begun_anew(own) if self.resets else own
        return old, given | old | {name: tree.gather_alone(old[name], given[name], name) for name in "qv"}

    def _balance_energy(
        self,
        model: Tree,
        given: dict[str, Any],
        after: ContactStep,
        tau: Sequence[Scalar],
        external: dict[str, Any],
        time: Scalar,
        known: frozenset[int],
    ) -> dict[str, list[Scalar]]:
        """Return the velocities after a step, and the account of the energy.

        Velocities are balanced in steps in which joints turn fast, and the energy is checked in those and in
        every so many. That is one pass of a loop at most, whose code is skipped where no sample of a block
        is due.
        """
        if self.contact is None and not self.is_watched:
            return {"v": list(after.v)}
        q, v, dt, first = given["q"], given["v"], given["dt"], given["lasted"] <= 0.0
        now = time if self.model.time_dependent else None
        watch = EnergyWatch(*given.get("energy", (0.0,) * len(EnergyWatch._fields)))
        fast = after.turn > FAST_TURN * FAST_TURN
        due = logical_or(fast, watch.left <= 0.0) if self.is_watched else fast

        def balance(carry: Any) -> Any:
            v_end, account, watch, _ = carry
            if self.contact is not None:
                acting = external.get("external_forces"), external.get("external_frame", "body")
                balance = balance_energy(model, (q, v), after, acting, account, dt, known, now)
                v_end = [select(fast, a, b) for a, b in zip(balance.v, v_end, strict=True)]
                account = [select(fast, a, b) for a, b in zip(balance.account, account, strict=True)]
            if self.is_watched:
                kinetic = (
                    0.5 * inner_product(after.momenta, v) if after.momenta else kinetic_energy(model, q, v)
                )
                falling = center_velocities(model, q, after.momenta) if after.momenta else [0.0] * model.nv
                watch = update_watch(watch, model, q, v, kinetic, dt, first, falling)
            return [v_end, account, watch, 1.0]

        carry: Any = [after.v, given.get("account", []), watch, select(due, 0.0, 1.0)]
        v_end, account, watch, _ = loop(1, balance, carry, until=lambda carry: carry[-1] > 0.0)
        found: dict[str, Any] = {"v": v_end}
        if self.contact is not None:
            found["account"] = account
        if self.is_watched:
            work = self._work(model, given, after.v, tau, external)
            found["energy"] = watch._replace(work=watch.work + maximum(work, 0.0), left=watch.left - 1.0)
        return found

    def _read_sensors(
        self,
        model: Model,
        given: dict[str, Any],
        found: dict[str, Any],
        after: ContactStep,
        contacts: Contacts | None,
        good: Scalar,
        clock: Callable[[Scalar], Scalar],
    ) -> dict[str, Any]:
        """Return what sensors carry on and their readings."""
        forces = None
        if contacts is not None:
            points = self.pairs, self.scene.pair_of_point.tolist()
            forces = ContactForces(contacts, *points, after.impulses, 1.0 / given["dt"], good)

        def end() -> StepEnd:
            return StepEnd(
                model=model,
                time=clock(select(good, 1.0, 0.0)),
                dt=given["dt"],
                q=found["q"],
                v=found["v"],
                q_start=given["q"],
                v_start=given["v"],
                tau=found["tau"],
                controls=next((given[name] for name in self._control_arguments), ()),
                contact=forces,
                external=given.get("external_forces", ()),
                external_frame=self.external_frame or "body",
            )

        return self.sensors.read_all(end, given, good)

    @cached_property
    def _control_arguments(self) -> tuple[str, ...]:
        """The argument that holds the controls, if there is one."""
        return tuple(name for name in ("tau", "ctrl", "q_ref") if name in self.argument_shapes)[:1]

    @cached_property
    def _read_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of controls and external forces, for readings of the caller's."""
        shapes = self.argument_shapes
        found = {"controls": shapes[self._control_arguments[0]]} if self._control_arguments else {}
        return found | ({"external": shapes["external_forces"]} if self.external_frame is not None else {})

    def _work(
        self,
        model: Tree,
        given: dict[str, Any],
        v_end: Sequence[Scalar],
        tau: Sequence[Scalar],
        external: dict[str, Any],
    ) -> Scalar:
        """Return the work of joint forces and external forces in a step [J]."""
        forces = list(tau)
        if external:
            q, still = given["q"], [0.0] * model.nv
            weights, held = bias_forces(model, q, still), bias_forces(model, q, still, **external)
            forces = [t + g - b for t, g, b in zip(forces, weights, held, strict=True)]
        return (
            0.5 * given["dt"] * inner_product(forces, [a + b for a, b in zip(given["v"], v_end, strict=True)])
        )

    def _remember(
        self, contacts: Contacts, after: ContactStep, good: Scalar, like: Any
    ) -> tuple[list[list[Scalar]], Scalar]:
        """Return what is remembered of the points that have been pressed, and how many there are."""

        def lasting(row: Row) -> Scalar:
            size = sum((absolute(x) for x in after.memory[row]), 0.0)
            return logical_and(good, size > 0.0)

        return remember(contacts, after.memory, lasting, (self.kept_points, self.memory_size), like)

    def _record_points(
        self, contacts: Contacts, after: ContactStep, rate: Scalar, like: Any
    ) -> list[list[Scalar]]:
        """Return a row for each point that touches or nearly touches: number, force, position, gap."""

        def row_of(row: Row) -> list[Scalar]:
            point, force = contacts.points[row], after.impulses[row].linear * rate
            return [*force, *point.position, point.gap]

        values = contacts.near.each(row_of)

        def is_recorded(row: Row) -> Scalar:
            impulse = after.impulses[row].linear
            pressed = impulse.dot(impulse) > 0.0
            return logical_or(contacts.points[row].gap < RECORDED_GAP, pressed)

        return remember(contacts, values, is_recorded, (self.kept_points, 7), like)[0]

    def _begun_anew(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the carried values, reset to the start where `reset` says so: state, clock, faults, work.
        What is remembered of contacts is not read in a first step."""
        again = absolute(given["reset"]) > 0.0
        fresh = self.fresh | {"q": given["q_start"], "v": given["v_start"]}
        if "account" in fresh:
            fresh["account"] = [0.0] * len(given["account"])

        def select_start(new: Any, old: Any) -> Any:
            if isinstance(new, Sequence):
                return [select_start(a, b) for a, b in zip(new, old, strict=True)]
            return select(again, new, old)

        names = [name for name in self.carried_results if name not in ("memory", "axes", "draws")]
        return {name: select_start(fresh[name], given[name]) for name in names}

    def _controls(
        self, model: Model, given: dict[str, Any], time: Scalar
    ) -> tuple[Sequence[Scalar], list[Motor]]:
        """Return joint forces, and motors beside them."""
        if self.drive is not None:
            return self.drive.motors(model, given, time)
        if self.policy is None:
            return given["tau"], []
        return forces_of(self.policy, model, time, given["q"], given["v"]), []

    def _step(
        self,
        model: Tree,
        given: dict[str, Any],
        tau: Sequence[Scalar],
        motors: list[Motor],
        time: Scalar,
        contacts: Contacts | None,
        external: dict[str, Any],
        moved: PrescribedStep | None,
        motion: PrescribedMotion | None,
    ) -> tuple[ContactStep, Sequence[Scalar]]:
        """Return the step, and the joint forces in it."""
        q, v, dt = given["q"], given["v"], given["dt"]
        if self.contact is None:
            assert isinstance(model, Model)
            if self.drive is not None:
                tau = self.drive.stable_forces(model, given, time)
            external = {"time": time if self.model.time_dependent else None, **external}
            acting = self._stage_forces(model, time, () if moved is None else moved.places)
            if moved is not None:
                return self._step_with_prescribed(model, moved, acting or tau, dt, external)
            end = step(
                aligned(model),
                q,
                v,
                acting or tau,
                dt,
                integrator=self.integrator,
                passive=True,
                stabilization="automatic",
                **external,
            )
            turn = squared_turning_rate(model, q, end.v) * (dt * dt) if self.is_watched else 0.0
            return ContactStep(end.q, end.v, turn=turn), tau
        memory = None
        if contacts is not None:
            first = given["lasted"] <= 0.0
            fresh: list[Scalar] = [0.0] * self.memory_size
            if isinstance(self.contact, Compliant):
                fresh[4] = select(first, FIRST_STEP_MARK, 0.0)
            memory = recall(contacts, given["memory"], fresh, unless=first)
        after = contact_step(
            model,
            q,
            v,
            tau,
            dt,
            () if contacts is None else contacts,
            motors=motors,
            memory=memory,
            settings=with_numbers(
                self.contact.settings, {name: given[law_argument(name)] for name in self.law_numbers}
            ),
            prescribed=motion,
            time=time if self.model.time_dependent else None,
            **external,
        )
        if self.drive is not None:
            tau = [a + b for a, b in zip(tau, motor_forces(model, motors, after.v, dt), strict=True)]
        if motion is not None:
            rate = 1.0 / dt
            tau = [after.reaction[k] * rate if k in motion.places else x for k, x in enumerate(tau)]
        return after, tau

    def _stage_forces(self, model: Model, time: Scalar, moved: Collection[int]) -> JointForces | None:
        """Return the forces of a policy at the stages of a step, zero at variables that are moved as given;
        None without a policy."""
        if self.policy is None:
            return None
        policy = self.policy

        def forces(q: Sequence[Scalar], v: Sequence[Scalar], elapsed: Scalar) -> list[Scalar]:
            tau = forces_of(policy, model, time + elapsed, q, v)
            return [0.0 if k in moved else x for k, x in enumerate(tau)]

        return forces

    def _step_with_prescribed(
        self,
        model: Model,
        moved: PrescribedStep,
        tau: Sequence[Scalar] | JointForces,
        dt: Scalar,
        external: dict[str, Any],
    ) -> tuple[ContactStep, Sequence[Scalar]]:
        """Return a step of hybrid dynamics, without contact, and the joint forces where it begins."""
        if not callable(tau):
            tau = [0.0 if k in moved.places else x for k, x in enumerate(tau)]
        options: dict[str, Any] = {"integrator": self.integrator, "prescribed": moved.stages(), **external}
        state = (aligned(model), moved.q, moved.v, tau, dt)
        end = step(*state, passive=True, stabilization="automatic", **options)
        arrived = moved.motion()
        q, v = list(end.q), arrived.fill(end.v, arrived.v)
        for part in moved.parts:
            q[part.body.q_slice] = part.q_end
        return ContactStep(q, v), prescribed_forces(*state, **options)


def law_argument(name: str) -> str:
    """Return the name of a contact law's option among the arguments of a step."""
    return f"contact.{name}"


def _law_identity(law: Rigid | Compliant | Law | None) -> object:
    """Return what tells a contact law from others; functions of the caller's are told by their digests."""
    if isinstance(law, Law) and law.has_functions:
        return "own law", law.order, replace(law, normal=LinearSurface(1.0, 1.0)).settings
    return None if law is None else law.settings


def _fault_of(after: ContactStep) -> Scalar:
    """Return the number of a state's fault, zero for a valid state."""
    bounded = logical_and(_is_bounded(after.q, MAX_POSITION), _is_bounded(after.v, MAX_SPEED))
    finite = logical_and(_is_bounded(after.q, 1e300), _is_bounded(after.v, 1e300))
    return select(bounded, 0.0, select(finite, 3.0, 2.0))


def _is_bounded(values: Sequence[Scalar], bound: float) -> Scalar:
    """Return whether no value is NaN, infinite or greater than a bound."""
    return sum_all(absolute(x) for x in values) <= bound


def _deepest(contacts: Contacts, first: Scalar, known: Sequence[Scalar]) -> list[Scalar]:
    """Return the least gap [m] below zero and the number of its point in a first step, else what is known."""

    def deeper(found: list[Scalar], row: Row) -> list[Scalar]:
        gap = contacts.points[row].gap
        return [minimum(gap, found[0]), select(gap < found[0], contacts.number[row], found[1])]

    def look(carry: list[Scalar]) -> list[Scalar]:
        return [*contacts.near.fold(deeper, [0.0, -1.0]), 1.0]

    return loop(1, look, [*known, select(first, 0.0, 1.0)], until=lambda carry: carry[2] > 0.0)[:2]


def _loads(model: Model, contacts: Contacts, after: ContactStep, rate: Scalar) -> list[list[Scalar]]:
    """Return the sum of contact forces on every body `(n_bodies, 3)` [N]."""

    def forces(row: Row) -> list[tuple[Row, Vec3]]:
        force = after.impulses[row].linear * rate
        return [(contacts.second[row], force), (contacts.first[row], -force)]

    sums = contacts.near.scatter(forces, contacts.bodies, Vec3.zero())
    return [list(sums.at(body)) for body in range(len(model.bodies))]
