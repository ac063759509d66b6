"""`da.rollout` of arrays on the host: the arguments of all steps, the steps, and the trajectory they make."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np

from dalembert.algorithms.stepping import INTEGRATORS
from dalembert.call.arguments import Array, ArrayArgument, Rows, as_array, common_batch, result_rows
from dalembert.compiler.rollout_execution import RolloutRun
from dalembert.contact.law import Law
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP
from dalembert.contact.options import Compliant, Rigid, run_time_options
from dalembert.control import Actuators, Servo
from dalembert.errors import (
    ArgumentError,
    DtypeError,
    ShapeError,
    UnknownNameError,
    require_choice,
    short_repr,
    whole_number,
)
from dalembert.host.foreign_arrays import is_foreign, require_numpy
from dalembert.host.process import require_memory
from dalembert.model.model import Model
from dalembert.simulation.alike_samples import BlockOrder
from dalembert.simulation.drives import Asked, Callback, Series, series
from dalembert.simulation.energy_watch import reported_gain
from dalembert.simulation.initial_state import (
    beyond_limits,
    exclusion_remedy,
    overlap_message,
    require_closed_loops,
    require_finite,
)
from dalembert.simulation.observers import Observer, evaluate_observers
from dalembert.simulation.sensing import stream_keys
from dalembert.simulation.step_function import CAUSES, REJECTED, rollout_kernel
from dalembert.simulation.step_plan import DEFAULT_INTEGRATOR, StepPlan, law_argument
from dalembert.simulation.trajectory import ContactRecord, SimulationWarning, Trajectory

# Records of contact points, some of which are selected anew in each step.


def contact_record(names: Sequence[tuple[str, str]], rows: Array) -> ContactRecord:
    """Return the record of all points that ever touched, or of all points if these are few.

    `rows (…, T, kept, 8)`: number, force, position and gap of the points of each frame, numbers below zero
    for none. A point that is not among them has no force there, and the gap `ABSENT_POINT_GAP`.
    """
    number = rows[..., 0]
    if len(names) > MAX_LISTED_POINTS:
        ever, places = np.unique(number[number >= 0.0].astype(int), return_inverse=True)
    else:
        ever, places = np.arange(len(names)), number[number >= 0.0].astype(int)
    found, frames = np.nonzero(number >= 0.0), (*number.shape[:-1], len(ever))
    record = ContactRecord(
        tuple(names[k] for k in ever),
        np.zeros((*frames, 3)),
        np.zeros((*frames, 3)),
        np.full(frames, ABSENT_POINT_GAP),
    )
    targets = (*found[:-1], places.reshape(-1))
    record.force[targets], record.position[targets] = rows[found][:, 1:4], rows[found][:, 4:7]
    record.gap[targets] = rows[found][:, 7]
    return record


MAX_LISTED_POINTS: Final = 128
"""The number of points up to which a record lists all, whether they touched or not."""


# Checks of the arguments of `da.rollout`, before anything is compiled.

Contact: TypeAlias = str | Rigid | Compliant | Law | None

CONTACTS: Final = ("rigid", "compliant")

RECORDED: Final = ("q", "v", "work")
"""What is carried from step to step and recorded in frames."""

MAX_STEPS: Final = 2**53
"""Steps are counted in float64 beside the state, which is exact up to this number."""

FEWER_FRAMES: Final = "take fewer steps or samples, or keep fewer frames, such as every=100"


def checked_contact(contact: Contact) -> Rigid | Compliant | Law | None:
    """Return the law of contact with its options; None without contact."""
    if contact is None:
        return None
    if isinstance(contact, str):
        require_choice("contact", contact, CONTACTS)
        contact = Rigid() if contact == "rigid" else Compliant()
    if not isinstance(contact, Rigid | Compliant | Law):
        raise DtypeError(
            f'rollout: contact is {type(contact).__name__}; give None, "rigid", "compliant", '
            "da.contact.Rigid(…), da.contact.Compliant(…) or da.contact.Law(…)"
        )
    return contact


def split_parameters(
    model: Model, law: Rigid | Compliant | Law | None, given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of the model by name, and the numbers of the contact law by the name of its option,
    after checking these where they lie on the host."""
    prefix, values, numbers = law_argument(""), dict(given), {}
    options = run_time_options(law)
    for name in given:
        option = name.removeprefix(prefix) if isinstance(name, str) else ""
        if option == name or option not in options:
            continue
        if name in model.value_names():
            raise ArgumentError(
                f'rollout: parameter "{name}" may be that of joint "contact" or an option of the contact '
                "law; give the joint another name, or set the option in the law"
            )
        numbers[option] = values.pop(name)
        if law is not None and not is_foreign(numbers[option]):
            found = as_array(name, numbers[option], ()).copy()
            for number in (found.min(), found.max()) if found.size else ():
                checked: dict[str, Any] = {option: float(number)}
                replace(law, **checked)
            numbers[option] = found
    names = model.value_names() if any(str(name).startswith(prefix) for name in values) else ()
    for name in values:
        if str(name).startswith(prefix) and name not in names:
            raise UnknownNameError.of("parameter of the contact law", name, map(law_argument, options))
    return values, numbers


def checked_integrator(name: str | None, contact: object) -> str:
    """Return the name of the integrator, if it goes with that contact."""
    if name is None:
        return DEFAULT_INTEGRATOR
    require_choice("integrator", name, INTEGRATORS)
    if contact is not None and name != "semi_implicit":
        raise ArgumentError(
            f'rollout: integrator="{name}" is for motion without contact; a step with contact is '
            "semi-implicit"
        )
    return name


def checked_steps(steps: object, controls: object, every: int) -> int:
    """Return the number of steps: as given, or that of the controls."""
    if steps is None:
        given: Any = controls.ctrl if isinstance(controls, Actuators) else controls
        given = () if given is None or callable(given) else given
        shape = tuple(given.shape) if is_foreign(given) else as_array("controls", given, ()).shape
        if len(shape) < 2:
            raise ArgumentError("rollout: say how many steps to take: steps=1000")
        steps = shape[-2]
    count = whole("steps", steps)
    if count % every:
        raise ArgumentError(
            f"rollout: {count} steps are not a multiple of every={every}, so that no frame is at the end"
        )
    return count


def whole(name: str, value: Any) -> int:
    """Return a whole number of steps from 1 on."""
    return whole_number(f"rollout: {name}", value, 1, MAX_STEPS)


def require_room(model: Model, batch: tuple[int, ...], frames: int) -> None:
    """Refuse a trajectory whose positions and velocities alone exceed the memory of this machine."""
    size = 8 * math.prod(batch) * (frames + 1) * (model.nq + model.nv + 1)
    require_memory(f"rollout: {frames} frames of {math.prod(batch)} samples", size, FEWER_FRAMES)


def checked_times(name: str, time: object) -> Array:
    """Return the time of the first frame [s], or one for each sample; the option `start` is one number."""
    found = as_array(name, time, ())
    if not np.isfinite(found).all() or (name == "start" and found.ndim):
        raise ArgumentError(f"rollout: {name} is {short_repr(time)}; give a finite time [s]")
    return found


def require_function(name: str, given: object, arguments: str) -> None:
    """Refuse what cannot be called."""
    if given is not None and not callable(given):
        raise ArgumentError(f"rollout: {name} is {short_repr(given)}; give a function of ({arguments})")


def batch_of(shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common batch shape of arguments with these batch shapes."""
    batch = common_batch(shapes.values())
    if batch is None:
        told = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise ShapeError(
            f"rollout: the arguments have different batches: {told}; they must agree, or be 1 along an axis"
        )
    return batch


@final
@dataclass(frozen=True, slots=True)
class RolloutRequest:
    """The checked arguments of a rollout; `given` are q0, v0, controls, external_forces and reset;
    `prescribed`: arrays of prescribed joints, by the names of the step's arguments; `law_numbers`: options of
    the contact law at run time."""

    plan: StepPlan
    given: Mapping[str, Any]
    prescribed: Mapping[str, Any]
    dt: Any
    time: Array
    steps: int
    every: int
    parameters: Mapping[str, Any]
    law_numbers: Mapping[str, Any]
    observers: Mapping[str, Observer | None]
    callback: Callback | None
    progress: Callable[[int, int], None] | None
    out: object
    check: str | None
    seed: object
    drive_constants: dict[str, Array]

    def initial(self, q: Any, v: Any) -> dict[str, Any]:
        """Return the state (q, v) that steps begin with, and the arguments that are the same in all steps."""
        found = self.plan.initial | {"q": q, "v": v, "dt": self.dt, "start": self.time}
        if self.plan.resets:
            found |= {"q_start": q, "v_start": v}
        found |= {law_argument(name): number for name, number in self.law_numbers.items()}
        return found | self.drive_constants

    def inputs(self, q: Any) -> dict[str, StepInput]:
        """Return the arrays that act in steps from q on, by the names of the step's arguments."""
        given, controls = self.given, self.given["controls"]
        found = {name: StepInput(given[name]) for name in ("external_forces", "reset")}
        found |= {name: StepInput(array) for name, array in self.prescribed.items()}
        if isinstance(controls, Servo):
            start = StepInput(q, held=True)  # its leading axes are samples, never steps
            found["q_ref"] = start if controls.q_ref is None else StepInput(controls.q_ref)
            found["v_ref"] = StepInput(controls.v_ref)
        elif isinstance(controls, Actuators):
            zero = np.zeros(len(self.plan.model.actuators))
            found["ctrl"] = StepInput(zero if controls.ctrl is None else controls.ctrl)
        else:
            found["tau"] = StepInput(np.zeros(self.plan.model.nv) if controls is None else controls)
        absent = [name for name, item in found.items() if item.values is None or callable(item.values)]
        return {name: item for name, item in found.items() if name not in absent}


class StepInput(NamedTuple):
    """An array that acts in steps, on the host or on a GPU; `held`: it has no axis of steps."""

    values: Any
    held: bool = False


def rollout_on_host(asked: RolloutRequest) -> Trajectory:
    """Take all steps of a rollout of arrays on the host."""
    plan, given, dt, start, steps, every = (
        asked.plan, asked.given, asked.dt, asked.time, asked.steps, asked.every
    )  # fmt: skip
    check = asked.check or "raise"
    model = plan.model
    for name, value in {**given, **asked.prescribed, **asked.law_numbers}.items():
        require_numpy(name, value)
    q, v = as_array("q0", given["q0"], (model.nq,)), as_array("v0", given["v0"], (model.nv,))
    require_room(model, q.shape[:-1], 0)
    require_room(model, v.shape[:-1], 0)
    if plan.prescription is not None:
        q, v = plan.prescription.starts(model, start, q, v)
    if check == "raise":
        require_finite("q0", q)
        require_finite("v0", v)
    own = {name: np.shape(model.value(name)) for name in asked.parameters}
    values = {name: as_array(name, asked.parameters[name], own[name]).copy() for name in own}
    shapes = plan.argument_shapes
    acting = {
        name: Series(array, False)
        if held
        else series("controls" if name == "tau" else name, array, shapes[name], steps)
        for name, (array, held) in asked.inputs(q).items()
    }
    batches = {"q0": q.shape[:-1], "v0": v.shape[:-1], "dt": dt.shape, "time": start.shape}
    batches |= {name: value.shape[: value.ndim - len(own[name])] for name, value in values.items()}
    for name, array in asked.drive_constants.items():
        batches[name] = array.shape[: array.ndim - len(shapes[name])]
    batches |= {law_argument(name): number.shape for name, number in asked.law_numbers.items()}
    for name, item in acting.items():
        axes = item.values.ndim - len(shapes[name]) - item.stepwise
        batches["controls" if name == "tau" else name] = item.values.shape[:axes]
    batch, callback = batch_of(batches), None
    require_room(model, batch, steps if asked.callback is not None else steps // every)
    try:
        if asked.callback is not None:
            acting["tau"] = Series(np.zeros((*batch, steps, model.nv)), True)
            callback = Asked(asked.callback, acting["tau"].values, start, dt)
        time = start[..., np.newaxis] + dt[..., np.newaxis] * np.arange(0, steps + 1, every)
        kept = [ArrayArgument(x, (time.shape[-1], n)) for x, n in (("q", model.nq), ("v", model.nv))]
        frames = result_rows(kept, Rows(batch, math.prod(batch), ()), "float64", asked.out)
        kernel = rollout_kernel(plan, tuple(name for name in acting if acting[name].stepwise), tuple(values))
        arrays = asked.initial(q, v) | {name: item.values for name, item in acting.items()}
        if plan.sensors.draws:
            arrays["stream"] = stream_keys(asked.seed, batch)
        run = kernel.start(
            *(arrays[name] for name in shapes),
            steps=steps,
            every=every,
            parameters=values or None,
            unrecorded=[name for name in plan.carried_results if name not in RECORDED],
        )
    except MemoryError as error:
        raise ArgumentError(
            f"rollout: {steps // every} frames of this model are more than memory holds; {FEWER_FRAMES}"
        ) from error
    begun = run.state["q"].copy(), run.state["v"].copy()
    rejected = np.zeros(batch, bool)
    if check != "off":
        rejected |= require_closed_loops(model, *begun, time[..., 0], values, flag=check == "flag")
    interrupted = _advance(run, asked.progress, callback, check)
    if "overlap" in run.state and check != "off" and run.done:
        report_overlap("rollout", plan, run.state["overlap"])
    if check == "flag":
        rejected |= (run.refused_at >= 0) | ~np.isfinite(np.concatenate(begun, axis=-1)).all(axis=-1)
    memory = [item.array for item in frames]
    return _trajectory(asked, run, time, begun, memory, acting.get("tau"), values, rejected, interrupted)


def report_overlap(what: str, plan: StepPlan, found: Array) -> None:
    """Warn of shapes that overlapped in the first step; `found (…, 2)` as that carries it."""
    said = overlap_message(found, lambda: plan.points)
    if said is not None:
        soft = isinstance(plan.contact, Compliant | Law)
        how = "springs part them" if soft else "they are moved apart without a push"
        pair_of_point = lambda k: plan.pairs[plan.scene.pair_of_point[k]]
        remedy = exclusion_remedy(plan.model, found, pair_of_point)
        warnings.warn(f"{what}: {said}; {how}{remedy}", SimulationWarning, stacklevel=4)


def _advance(
    run: RolloutRun, progress: Callable[[int, int], None] | None, asked: Asked | None, check: str
) -> bool:
    """Take all steps; True if Ctrl-C came first."""
    blocks = BlockOrder(run) if "memory" in run.state else None
    try:
        while run.done < run.steps:
            if asked is not None:
                asked.before(run.done, run.state["q"], run.state["v"])
            first = run.done == 0
            run.advance(None if asked is None else 1)
            if first and check == "raise":
                run.require_accepted()
            if blocks is not None:
                blocks.update()
            if progress is not None:
                progress(run.done, run.steps)
    except KeyboardInterrupt:
        return True
    return False


def _trajectory(
    asked: RolloutRequest,
    run: RolloutRun,
    time: Array,
    begun: tuple[Array, Array],
    memory: list[Array],
    tau: Series | None,
    parameters: Mapping[str, Array],
    rejected: Array,
    interrupted: bool,
) -> Trajectory:
    """Return the frames until now; `memory`: where those of q and v go; `rejected`: samples to be flagged."""
    plan, observers, batch, frames = asked.plan, asked.observers, rejected.shape, run.done // run.every
    samples = (slice(None),) * len(batch)
    found = {
        name: array[(*samples, slice(frames))] for name, array in zip(plan.results, run.outputs, strict=True)
    }

    def from_start(first: Array, later: Array) -> Array:
        return np.concatenate([first[(*samples, np.newaxis)], later], axis=len(batch))

    q, v = (x[..., : frames + 1, :] for x in memory) if interrupted else memory
    for x, first, later in zip((q, v), begun, (found["q"], found["v"]), strict=True):
        x[..., 0, :], x[..., 1:, :] = first, later
        x[rejected] = np.nan
    times = time[..., : frames + 1]
    observed = evaluate_observers(plan.model, observers, times, q, v, parameters, asked.check)
    if "contact_work" in observers:
        observed["contact_work"] = from_start(np.zeros(batch), found["work"])
    if "contact_forces" in observers:
        shape = (len(plan.model.bodies), 3)
        loads = found.get("loads", np.zeros((*batch, frames, *shape)))
        observed["contact_forces"] = from_start(np.zeros((*batch, *shape)), loads)
    for name, result in plan.sensors.results.items():
        later = found[result]
        first = np.full((*batch, *later.shape[len(batch) + 1 :]), np.nan)
        observed[name] = from_start(first, later)
    record = None
    if plan.record and plan.contact is not None:
        rows = found.get("contact", np.full((*batch, frames, 0, 8), -1.0))
        record = contact_record(plan.points if plan.pairs else (), rows)
    fault = np.where(rejected, CAUSES.index(REJECTED), run.state["fault"]).astype(int)
    lasted = np.where(rejected, 0, run.state["lasted"]).astype(int)
    trajectory = Trajectory(
        model=plan.model,
        time=times if times.ndim == 1 else np.broadcast_to(times, (*batch, times.shape[-1])),
        q=q,
        v=v,
        tau=found["tau"] if "tau" in found or tau is None else tau.at_frames(batch, frames, run.every),
        contacts=record,
        observed=observed,
        failed_at=np.where(fault > 0, lasted, -1),
        cause=np.array(CAUSES)[fault],
        energy_gain=reported_gain(run.state["energy"]) if plan.is_watched else np.array(0.0),
        interrupted=interrupted,
        parameters=parameters,
    )
    _report(trajectory, run.done, plan.contact)
    return trajectory


def _report(trajectory: Trajectory, done: int, contact: object) -> None:
    """Warn of samples that failed, of joints beyond limits that do not act, and of an early end."""
    if trajectory.interrupted:
        warnings.warn(
            f"rollout: interrupted after {done} steps; the trajectory has the frames until then",
            SimulationWarning,
            stacklevel=5,
        )
    beyond = "" if contact is not None else beyond_limits(trajectory)
    if beyond:
        warnings.warn(
            f'rollout: {beyond}; without contact joints have no limits: give contact="rigid" or '
            '"compliant", which limit them also where nothing touches',
            SimulationWarning,
            stacklevel=5,
        )
    gained = trajectory.energy_gain > 0.0
    if gained.any():
        many = f"{np.count_nonzero(gained)} of {gained.size} samples" if trajectory.batch else "the motion"
        warnings.warn(
            f"rollout: {many} gained energy that no work explains, {trajectory.energy_gain.max():.3g} J at "
            "most (energy_gain); take smaller steps, or part shapes that overlap at the start",
            SimulationWarning,
            stacklevel=5,
        )
    failed = trajectory.failed
    if not failed.any():
        return
    step = int(trajectory.failed_at[failed].min())
    which = np.argwhere(trajectory.failed_at == step)[0]
    sample = f", sample {tuple(which.tolist())}" if trajectory.batch else ""
    many = f"{np.count_nonzero(failed)} of {failed.size} samples failed" if trajectory.batch else "failed"
    warnings.warn(
        f"rollout: {many}, the first at step {step}{sample}: {trajectory.cause[tuple(which)]}; "
        "failed samples stay in their last good state (failed_at, cause)",
        SimulationWarning,
        stacklevel=5,
    )
