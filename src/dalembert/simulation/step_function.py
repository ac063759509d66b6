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
from typing import Any, Final, final

import numpy as np

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.dense import inner_product
from dalembert.algorithms.energy_momentum import kinetic_energy
from dalembert.algorithms.integrators import JointForces
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.kinematics import body_velocities, forward_kinematics, squared_turning_rate
from dalembert.algorithms.open_tree import is_constrained, require_regular_inertia
from dalembert.algorithms.stepping import prescribed_forces, step
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.alike_trees import Forest, forest_of
from dalembert.compiler.library import source_digest
from dalembert.compiler.lowering import Recipe
from dalembert.compiler.recording import kept_kernel
from dalembert.compiler.rollout_execution import CompiledRollout, compile_rollout
from dalembert.contact.compliant_step import FIRST_STEP_MARK
from dalembert.contact.contacts import Contacts, recall, remember, with_coefficients
from dalembert.contact.law import Law
from dalembert.contact.options import Compliant, Rigid, with_numbers
from dalembert.contact.pairs import pairs_with_values
from dalembert.contact.prescribed import PrescribedMotion
from dalembert.contact.step import ContactStep, balance_energy, contact_step
from dalembert.contact.step_terms import Motor, center_velocities
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import Row, Scalar, absolute, logical_and, logical_or, loop, maximum, minimum, select
from dalembert.scalar.row_sets import sum_all
from dalembert.simulation.drives import delay_line, forces_of, motor_forces
from dalembert.simulation.energy_watch import EnergyWatch, update_watch
from dalembert.simulation.prescription import PrescribedStep
from dalembert.simulation.sensing import ContactForces, StepEnd
from dalembert.simulation.step_plan import StepPlan, law_argument
from dalembert.spatial import Vec3

FAST_TURN = 0.01
"""Steps in which joints turn by more than this [rad], root of the mean of squares, are balanced: in others
the error of the kinetic energy is below 5e-5 of it."""

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


def rollout_kernel(
    plan: StepPlan, streams: tuple[str, ...], parameters: tuple[str, ...], dtype: str = "float64"
) -> CompiledRollout:
    """Return the kernel of many steps, kept with the model and on disk. Functions of the caller's are part of
    it as what they compute now."""
    options = (streams, parameters, dtype)
    found = plan.kernels.get(options)
    if found is not None:
        return found
    model = plan.model
    values = tuple(ArrayArgument(name, np.shape(model.value(name))) for name in parameters)
    recorded, functions = plan.record_functions(values)
    known = () if recorded.prescription is None else recorded.prescription.names
    key = ("rollout", *recorded.identity, *options)

    def step(tree: Model, *arrays: Any) -> Any:
        if not is_constrained(tree):
            require_regular_inertia(tree, "rollout", known)
        return take_step(recorded, tree, *arrays)

    def make() -> CompiledRollout:
        digests = [function.digest for function in functions]
        identity = hashlib.sha256(f"{key} {digests} {model.digest} {source_digest()}".encode()).hexdigest()
        recipe = Recipe("rollout", step, model, plan.arguments, values, identity=identity)
        recipe = replace(recipe, divergent=plan.is_divergent)
        return compile_rollout(recipe, carried=plan.carried_results, streams=streams, dtype=dtype)

    if functions:
        return kept_kernel(model, key, functions, make)
    kept: CompiledRollout | None = model.functions.get(key)
    if kept is None:
        kept = model.functions[key] = make()
    plan.kernels[options] = kept
    return kept


def take_step(plan: StepPlan, model: Model, *values: Any) -> tuple[Any, ...]:
    """Return the results of a plan after one step; `values` are its arguments."""
    start = _begin(plan, model, values)
    contacts = _find_contacts(start)
    after, tau = _move(start, contacts)
    fault, memory = _find_fault(start, contacts, after)
    alive = start.given["fault"] <= 0.0
    good = logical_and(alive, fault <= 0.0)

    def keep_if_good(new: Sequence[Scalar], old: Sequence[Scalar]) -> list[Scalar]:
        return [select(good, a, b) for a, b in zip(new, old, strict=True)]

    given, tree = start.given, start.tree
    found: dict[str, Any] = {
        "q": keep_if_good(after.q, start.old["q"]),
        "lasted": given["lasted"] + select(good, 1.0, 0.0),
        "fault": select(alive, fault, given["fault"]),
        "tau": tau,
        "memory": memory,
        "targets": start.targets,
    }
    if contacts is not None:
        found |= _contact_results(start, contacts, after, good)
    if plan.work:
        found["work"] = given["work"] + select(good, after.work, 0.0)
    if start.moved is not None:
        found["driven"] = keep_if_good(start.moved.velocities_for_next_step, given["driven"])
    balanced = _balance_energy(start, after, tau)
    found |= {name: keep_if_good(new, start.old[name]) for name, new in balanced.items()}
    if isinstance(tree, Forest):
        found |= {name: tree.flatten(found[name], OF[name]) for name in OF if name in found}
    if plan.sensors.sensors:
        found |= _read_sensors(start, found, after, contacts, good)
    return tuple(found[name] for name in plan.results)


# Where a step begins


@final
@dataclass(frozen=True)
class _Start:
    """The beginning of a step, and what acts in it.

    `tree`: the model as the step goes through it, with rows of trees that are alike; `whole`: the arguments
    for the model as it is; `old`: those for the tree; `given`: `old` with prescribed joints where their
    motion begins; `moved`: these joints; `motion`: the same for steps with contact; `targets`: those of the
    next steps; `clock`: the time [s] after so many more steps.
    """

    plan: StepPlan
    model: Model
    tree: Tree
    whole: dict[str, Any]
    old: dict[str, Any]
    given: dict[str, Any]
    tau: Sequence[Scalar]
    motors: list[Motor]
    moved: PrescribedStep | None
    motion: PrescribedMotion | None
    time: Scalar
    targets: list[list[Scalar]] | None
    clock: Callable[[Scalar], Scalar]

    @property
    def now(self) -> Scalar | None:
        """The time [s], for models that depend on it."""
        return self.time if self.plan.model.time_dependent else None

    @property
    def known(self) -> frozenset[int]:
        """The places of joints that are moved as given, in steps with contact."""
        return frozenset() if self.motion is None else self.motion.places

    @property
    def like(self) -> list[Any]:
        """Values of a sample, whose kind those of its contact points have."""
        return [self.given["q"], self.given["dt"]]

    @property
    def external(self) -> dict[str, Any]:
        """The external forces and their frame, if there are any."""
        if self.plan.external_frame is None:
            return {}
        return {
            "external_forces": self.given["external_forces"],
            "external_frame": self.plan.external_frame,
        }


def _begin(plan: StepPlan, model: Model, values: Sequence[Any]) -> _Start:
    """Return where a step begins: joints moved as given, controls, and alike trees as rows."""
    named = dict(zip((item.name for item in plan.arguments), values, strict=True))
    first = named | _reset_values(plan, named) if plan.resets else named
    given, moved, motion, targets = first, None, None, None

    def clock(steps: Scalar) -> Scalar:
        return first["start"] + (first["lasted"] + steps) * first["dt"]

    if plan.prescription is not None:
        moved = plan.prescription.step(model, given, clock)
        given = given | {"q": moved.q, "v": moved.v}
    time = clock(0.0)
    if plan.drive is not None and plan.drive.delay:
        delayed = plan.drive.delayed_argument
        acting, targets = delay_line(given, delayed, plan.drive.delay)
        given = given | {delayed: acting}
    tau, motors = _controls(plan, model, given, time)
    if moved is not None:
        motors = [motor for motor in motors if motor.place not in moved.places]
        tau = _clear(tau, moved.places)
        motion = None if plan.contact is None else moved.motion()
    whole = given | {"q": first["q"], "v": first["v"]}
    start = _Start(plan, model, model, whole, whole, given, tau, motors, moved, motion, time, targets, clock)
    return start if plan.contact is None else _gather(start, named)


def _reset_values(plan: StepPlan, given: dict[str, Any]) -> dict[str, Any]:
    """Return the carried values, reset to the start where `reset` says so: state, clock, faults, work.
    What is remembered of contacts is not read in a first step."""
    again = absolute(given["reset"]) > 0.0
    fresh = plan.fresh | {"q": given["q_start"], "v": given["v_start"]}
    if "account" in fresh:
        fresh["account"] = [0.0] * len(given["account"])

    def select_start(new: Any, old: Any) -> Any:
        if isinstance(new, Sequence):
            return [select_start(a, b) for a, b in zip(new, old, strict=True)]
        return select(again, new, old)

    names = [name for name in plan.carried_results if name not in ("memory", "axes", "draws")]
    return {name: select_start(fresh[name], given[name]) for name in names}


def _controls(
    plan: StepPlan, model: Model, given: dict[str, Any], time: Scalar
) -> tuple[Sequence[Scalar], list[Motor]]:
    """Return joint forces, and motors beside them."""
    if plan.drive is not None:
        return plan.drive.motors(model, given, time)
    if plan.policy is None:
        return given["tau"], []
    return forces_of(plan.policy, model, time, given["q"], given["v"]), []


def _gather(start: _Start, named: dict[str, Any]) -> _Start:
    """Return the start with a model's alike trees as rows, if it has any; `named`: the arguments before they
    are reset. Prescribed joints are not among rows."""
    plan, model, motion = start.plan, start.model, start.motion
    tree = forest_of(model, start.given["dt"], [motor.place for motor in start.motors], start.known)
    if not isinstance(tree, Forest):
        return replace(start, tree=tree)
    own = {name: tree.gather(value, OF[name]) if name in OF else value for name, value in named.items()}
    old = own | _reset_values(plan, own) if plan.resets else own
    alone = {name: tree.gather_alone(old[name], start.given[name], name) for name in "qv"}
    return replace(
        start,
        tree=tree,
        old=old,
        given=start.given | old | alone,
        tau=tree.gather(start.tau, "v"),
        motors=tree.gather_motors(start.motors),
        motion=None if motion is None else tree.gather_prescribed(motion),
    )


def _clear(tau: Sequence[Scalar], places: Collection[int]) -> list[Scalar]:
    """Return joint forces, zero at these places."""
    return [0.0 if k in places else x for k, x in enumerate(tau)]


# Contact, dynamics and integration


def _find_contacts(start: _Start) -> Contacts | None:
    """Return the contact points where a step begins; None for models without pairs."""
    plan, tree, given, like = start.plan, start.tree, start.given, start.like
    if not plan.pairs:
        return None
    moving = body_velocities(tree, given["q"], given["v"], time=start.now)
    poses, first = forward_kinematics(tree, given["q"], time=start.now), given["lasted"] <= 0.0
    axes = [[select(first, -1.0, number), *axis] for number, *axis in given.get("axes", ())]
    contacts = plan.scene.contacts(poses, moving, given["dt"], like, axes, tree)
    pairs = pairs_with_values(plan.model, start.model, plan.pairs)
    if all(a is b for a, b in zip(pairs, plan.pairs, strict=True)):
        return contacts
    return with_coefficients(contacts, pairs, plan.scene.pair_of_point, like)


def _move(start: _Start, contacts: Contacts | None) -> tuple[ContactStep, Sequence[Scalar]]:
    """Return the step, and the joint forces in it."""
    if start.plan.contact is not None:
        return _move_in_contact(start, start.plan.contact, contacts)
    plan, model, given, moved, tau = start.plan, start.model, start.given, start.moved, start.tau
    if plan.drive is not None:
        tau = plan.drive.stable_forces(model, given, start.time)
    places = frozenset[int]() if moved is None else moved.places
    acting = _stage_forces(start, places) or (tau if moved is None else _clear(tau, places))
    options = {"integrator": plan.integrator, "time": start.now, **start.external}
    if moved is not None:
        options["prescribed"] = moved.stages()
    state = (aligned(model), given["q"], given["v"], acting, given["dt"])
    end = step(*state, passive=True, stabilization="automatic", **options)
    if moved is not None:
        return _put_prescribed(end, moved), prescribed_forces(*state, **options)
    turn: Scalar = 0.0
    if plan.is_watched:
        turn = squared_turning_rate(model, given["q"], end.v) * (given["dt"] * given["dt"])
    return ContactStep(end.q, end.v, turn=turn), tau


def _stage_forces(start: _Start, places: Collection[int]) -> JointForces | None:
    """Return the forces of a policy at the stages of a step, zero at variables that are moved as given;
    None without a policy."""
    policy = start.plan.policy
    if policy is None:
        return None

    def forces(q: Sequence[Scalar], v: Sequence[Scalar], elapsed: Scalar) -> list[Scalar]:
        return _clear(forces_of(policy, start.model, start.time + elapsed, q, v), places)

    return forces


def _put_prescribed(end: Any, moved: PrescribedStep) -> ContactStep:
    """Return the state after a step of hybrid dynamics, with prescribed joints where their motion ends."""
    arrived = moved.motion()
    q, v = list(end.q), arrived.fill(end.v, arrived.v)
    for part in moved.parts:
        q[part.body.q_slice] = part.q_end
    return ContactStep(q, v)


def _move_in_contact(
    start: _Start, law: Rigid | Compliant | Law, contacts: Contacts | None
) -> tuple[ContactStep, Sequence[Scalar]]:
    """Return the step with contact, and the joint forces in it."""
    plan, tree, given, tau = start.plan, start.tree, start.given, start.tau
    memory = None
    if contacts is not None:
        first = given["lasted"] <= 0.0
        fresh: list[Scalar] = [0.0] * plan.memory_size
        if isinstance(law, Compliant):
            fresh[4] = select(first, FIRST_STEP_MARK, 0.0)
        memory = recall(contacts, given["memory"], fresh, unless=first)
    numbers = {name: given[law_argument(name)] for name in plan.law_numbers}
    after = contact_step(
        tree,
        given["q"],
        given["v"],
        tau,
        given["dt"],
        () if contacts is None else contacts,
        motors=start.motors,
        memory=memory,
        settings=with_numbers(law.settings, numbers),
        prescribed=start.motion,
        time=start.now,
        **start.external,
    )
    if plan.drive is not None:
        own = motor_forces(tree, start.motors, after.v, given["dt"])
        tau = [a + b for a, b in zip(tau, own, strict=True)]
    if start.motion is not None:
        rate = 1.0 / given["dt"]
        tau = [after.reaction[k] * rate if k in start.known else x for k, x in enumerate(tau)]
    return after, tau


# Faults, and what is remembered and recorded of contact


def _find_fault(
    start: _Start, contacts: Contacts | None, after: ContactStep
) -> tuple[Scalar, list[list[Scalar]]]:
    """Return the number of a step's fault, zero for none, and what is remembered of contact points."""
    given, memory = start.given, list[list[Scalar]]()
    alive = given["fault"] <= 0.0
    commands = [*start.tau, *(x for motor in start.motors for x in (motor.error, motor.v_ref))]
    commands += [] if start.moved is None else start.moved.given
    pushes = [x for six in given.get("external_forces", ()) for x in six]
    fault = select(_is_bounded(pushes, 1e300), _fault_of(after), 4.0) if pushes else _fault_of(after)
    if contacts is not None:
        good = logical_and(alive, fault <= 0.0)
        memory, count = _remember(start, contacts, after, good)
        too_many = logical_and(fault <= 0.0, count > float(start.plan.kept_points))
        fault = select(too_many, 5.0, fault)
    return select(_is_bounded(commands, MAX_POSITION), fault, 1.0), memory


def _fault_of(after: ContactStep) -> Scalar:
    """Return the number of a state's fault, zero for a valid state."""
    bounded = logical_and(_is_bounded(after.q, MAX_POSITION), _is_bounded(after.v, MAX_SPEED))
    finite = logical_and(_is_bounded(after.q, 1e300), _is_bounded(after.v, 1e300))
    return select(bounded, 0.0, select(finite, 3.0, 2.0))


def _is_bounded(values: Sequence[Scalar], bound: float) -> Scalar:
    """Return whether no value is NaN, infinite or greater than a bound."""
    return sum_all(absolute(x) for x in values) <= bound


def _remember(
    start: _Start, contacts: Contacts, after: ContactStep, good: Scalar
) -> tuple[list[list[Scalar]], Scalar]:
    """Return what is remembered of the points that have been pressed, and how many there are."""
    plan = start.plan

    def lasting(row: Row) -> Scalar:
        size = sum((absolute(x) for x in after.memory[row]), 0.0)
        return logical_and(good, size > 0.0)

    return remember(contacts, after.memory, lasting, (plan.kept_points, plan.memory_size), start.like)


def _contact_results(start: _Start, contacts: Contacts, after: ContactStep, good: Scalar) -> dict[str, Any]:
    """Return what is carried on of contacts, and recorded."""
    plan, given = start.plan, start.given
    rate = select(good, 1.0 / given["dt"], 0.0)
    found: dict[str, Any] = {"axes": contacts.axes}
    if plan.watch:
        found["overlap"] = _deepest(contacts, given["lasted"] <= 0.0, given["overlap"])
    if plan.record:
        found["contact"] = _record_points(start, contacts, after, rate)
    if plan.loads:
        found["loads"] = _loads(start.model, contacts, after, rate)
    return found


def _deepest(contacts: Contacts, first: Scalar, known: Sequence[Scalar]) -> list[Scalar]:
    """Return the least gap [m] below zero and the number of its point in a first step, else what is known."""

    def deeper(found: list[Scalar], row: Row) -> list[Scalar]:
        gap = contacts.points[row].gap
        return [minimum(gap, found[0]), select(gap < found[0], contacts.number[row], found[1])]

    def look(carry: list[Scalar]) -> list[Scalar]:
        return [*contacts.near.fold(deeper, [0.0, -1.0]), 1.0]

    return loop(1, look, [*known, select(first, 0.0, 1.0)], until=lambda carry: carry[2] > 0.0)[:2]


def _record_points(start: _Start, contacts: Contacts, after: ContactStep, rate: Scalar) -> list[list[Scalar]]:
    """Return a row for each point that touches or nearly touches: number, force, position, gap."""

    def row_of(row: Row) -> list[Scalar]:
        point, force = contacts.points[row], after.impulses[row].linear * rate
        return [*force, *point.position, point.gap]

    values = contacts.near.each(row_of)

    def is_recorded(row: Row) -> Scalar:
        impulse = after.impulses[row].linear
        pressed = impulse.dot(impulse) > 0.0
        return logical_or(contacts.points[row].gap < RECORDED_GAP, pressed)

    return remember(contacts, values, is_recorded, (start.plan.kept_points, 7), start.like)[0]


def _loads(model: Model, contacts: Contacts, after: ContactStep, rate: Scalar) -> list[list[Scalar]]:
    """Return the sum of contact forces on every body `(n_bodies, 3)` [N]."""

    def forces(row: Row) -> list[tuple[Row, Vec3]]:
        force = after.impulses[row].linear * rate
        return [(contacts.second[row], force), (contacts.first[row], -force)]

    sums = contacts.near.scatter(forces, contacts.bodies, Vec3.zero())
    return [list(sums.at(body)) for body in range(len(model.bodies))]


# Energy


def _balance_energy(start: _Start, after: ContactStep, tau: Sequence[Scalar]) -> dict[str, list[Scalar]]:
    """Return the velocities after a step, and the account of the energy.

    Velocities are balanced in steps in which joints turn fast, and the energy is checked in those and in
    every so many. That is one pass of a loop at most, whose code is skipped where no sample of a block is
    due.
    """
    plan, given = start.plan, start.given
    if plan.contact is None and not plan.is_watched:
        return {"v": list(after.v)}
    first = given["lasted"] <= 0.0
    watch = EnergyWatch(*given.get("energy", (0.0,) * len(EnergyWatch._fields)))
    fast = after.turn > FAST_TURN * FAST_TURN
    due = logical_or(fast, watch.left <= 0.0) if plan.is_watched else fast

    def balance(carry: Any) -> Any:
        v_end, account, watch, _ = carry
        if plan.contact is not None:
            acting = start.external.get("external_forces"), start.external.get("external_frame", "body")
            state, known = (given["q"], given["v"]), start.known
            new = balance_energy(start.tree, state, after, acting, account, given["dt"], known, start.now)
            v_end = [select(fast, a, b) for a, b in zip(new.v, v_end, strict=True)]
            account = [select(fast, a, b) for a, b in zip(new.account, account, strict=True)]
        if plan.is_watched:
            watch = _look_at_energy(start, after, watch, first)
        return [v_end, account, watch, 1.0]

    carry: Any = [after.v, given.get("account", []), watch, select(due, 0.0, 1.0)]
    v_end, account, watch, _ = loop(1, balance, carry, until=lambda carry: carry[-1] > 0.0)
    found: dict[str, Any] = {"v": v_end}
    if plan.contact is not None:
        found["account"] = account
    if plan.is_watched:
        work = _work(start, after.v, tau)
        found["energy"] = watch._replace(work=watch.work + maximum(work, 0.0), left=watch.left - 1.0)
    return found


def _look_at_energy(start: _Start, after: ContactStep, watch: EnergyWatch, first: Scalar) -> EnergyWatch:
    """Return the watch with the energy where a step begins."""
    tree, q, v, momenta = start.tree, start.given["q"], start.given["v"], after.momenta
    kinetic = 0.5 * inner_product(momenta, v) if momenta else kinetic_energy(tree, q, v)
    falling = center_velocities(tree, q, momenta) if momenta else [0.0] * tree.nv
    return update_watch(watch, tree, q, v, kinetic, start.given["dt"], first, falling)


def _work(start: _Start, v_end: Sequence[Scalar], tau: Sequence[Scalar]) -> Scalar:
    """Return the work of joint forces and external forces in a step [J]."""
    tree, q, v, forces = start.tree, start.given["q"], start.given["v"], list(tau)
    if start.external:
        still = [0.0] * tree.nv
        weights, held = bias_forces(tree, q, still), bias_forces(tree, q, still, **start.external)
        forces = [t + g - b for t, g, b in zip(forces, weights, held, strict=True)]
    return 0.5 * start.given["dt"] * inner_product(forces, [a + b for a, b in zip(v, v_end, strict=True)])


# Sensors


def _read_sensors(
    start: _Start, found: dict[str, Any], after: ContactStep, contacts: Contacts | None, good: Scalar
) -> dict[str, Any]:
    """Return what sensors carry on and their readings."""
    plan, given, forces = start.plan, start.whole, None
    if contacts is not None:
        points = plan.pairs, plan.scene.pair_of_point.tolist()
        forces = ContactForces(contacts, *points, after.impulses, 1.0 / given["dt"], good)

    def end() -> StepEnd:
        return StepEnd(
            model=start.model,
            time=start.clock(select(good, 1.0, 0.0)),
            dt=given["dt"],
            q=found["q"],
            v=found["v"],
            q_start=given["q"],
            v_start=given["v"],
            tau=found["tau"],
            controls=() if plan.control_argument is None else given[plan.control_argument],
            contact=forces,
            external=given.get("external_forces", ()),
            external_frame=plan.external_frame or "body",
        )

    return plan.sensors.read_all(end, given, good)
