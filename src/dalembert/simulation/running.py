"""`da.Simulation`: samples whose state stays where it is, and which go on step by step."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.applied_forces import FORCE_FRAMES
from dalembert.api.calls import Array, Check, checked_time_step
from dalembert.call.arguments import as_array, common_batch
from dalembert.compiler.execution import CHECKS
from dalembert.compiler.library import no_model
from dalembert.compiler.rollout_execution import ArrayBlock, StepsInPlace
from dalembert.control import Actuators, Belt, MotionFunction, Servo
from dalembert.errors import ArgumentError, DtypeError, ShapeError, UnknownNameError, require_choice
from dalembert.host.foreign_arrays import library_of, to_host
from dalembert.model.model import Model
from dalembert.simulation.actuator_drive import drive_and_constants
from dalembert.simulation.alike_samples import BlockOrder
from dalembert.simulation.drives import Policy
from dalembert.simulation.host_rollouts import (
    Contact,
    batch_of,
    checked_contact,
    checked_integrator,
    checked_times,
    contact_record,
    report_overlap,
    split_parameters,
    whole,
)
from dalembert.simulation.initial_state import require_closed_loops, require_finite
from dalembert.simulation.prescription import prescription_of
from dalembert.simulation.sensing import stream_keys
from dalembert.simulation.sensors import Sensors, sensors_of
from dalembert.simulation.step_function import CAUSES, REJECTED, rollout_kernel
from dalembert.simulation.step_plan import StepPlan, law_argument
from dalembert.simulation.trajectory import ContactRecord

TARGETS: Final = ("q_ref", "ctrl", "tau")
"""The arguments of a step that `controls` of `Simulation.step` may be: the first of them that there is."""

GO_ON: Final = ("draws", "stream")
"""What a reset leaves: other episodes of a sample have other random numbers."""

ABSENT: Final = -1.0
"""The number of a contact point in a row of a record without a point."""


@final
class Simulation:
    """Samples of a model whose state stays where it is, and goes on by steps of dt [s]:

        x <- f(x, u), as often as wanted,    x = (q, v, contact memory, clock, faults)

    with f the step of `da.rollout`: steps in pieces give the same bits as one rollout of all of them. Kernels
    and memory are bound once, so that `step` costs a few microseconds beside the steps themselves.

    `q` `(…, nq)` and `v` `(…, nv)`: the start; None: `model.neutral()`, at rest. Leading axes, of these and
    of `dt`, `time` and `parameters`, are samples. `contact`, `integrator`, `prescribed` (functions of time,
    or arrays without an axis of steps) and `parameters` as in `da.rollout`. `controls` says what the
    `controls` of `step` are: None, joint forces `(…, nv)` [N m, N]; a `da.control.Servo`, its targets q_ref
    `(…, nq)`, with `Servo.q_ref` the first of them; `da.control.Actuators`, control signals `(…, nu)`; a
    policy or functions of time are compiled into the step, and `step` takes no controls. `external_frame`:
    the frame of the external forces of `step`, "body" (None), "world" or "center". `check`: "raise" (None)
    refuses a start that is not finite, has a quaternion that is not of unit norm or open loops; "flag"
    reports such samples in `failed` and `cause`; "off" checks nothing.

    `sensors`: those of `da.sensors` that are read at the end of each call, compiled with the step: a list, or
    a dict by name; `seed` of their random numbers, a whole number or one for each sample.

    `q`, `v`, `time` [s] and `tau` are the same arrays every time, `(…, nq)`, `(…, nv)`, `(…)` and `(…, nv)`,
    written in place: PyTorch tensors of the same memory if the start was given as tensors, else NumPy arrays.
    What is written into `q` and `v` is where the next step begins. `tau`: the joint forces of the last step.

    >>> model = da.models.pendulum(length=1.0)
    >>> simulation = da.Simulation(model, [0.1], dt=0.001)
    >>> for _ in range(100):
    ...     simulation.step(-0.5 * simulation.v, steps=10)
    >>> print(simulation.time, bool(abs(simulation.q[0]) < 0.1))
    1.0 True
    """

    def __init__(
        self,
        model: Model,
        q: npt.ArrayLike | None = None,
        v: npt.ArrayLike | None = None,
        *,
        dt: npt.ArrayLike = 0.002,
        contact: Contact = None,
        controls: Policy | Servo | Actuators | None = None,
        integrator: str | None = None,
        prescribed: Mapping[str, npt.ArrayLike | MotionFunction | Belt] | None = None,
        external_frame: str | None = None,
        sensors: Sensors = (),
        parameters: Mapping[str, object] | None = None,
        time: npt.ArrayLike = 0.0,
        seed: npt.ArrayLike = 0,
        check: Check = None,
    ) -> None:
        _check_arguments(model, controls, external_frame, parameters, check)
        self.model: Final = model
        self._check, self._frame = check or "raise", external_frame or "body"
        self._in_torch = "torch" in (library_of(q), library_of(v))
        law = checked_contact(contact)
        self.made_with: Final[dict[str, Any]] = {
            "contact": law,
            "controls": controls,
            "prescribed": prescribed,
            "integrator": integrator,
            "external_frame": external_frame,
            "check": check,
        }
        method = checked_integrator(integrator, law)
        given = {name: to_host(name, value, "a Simulation") for name, value in (parameters or {}).items()}
        prescription, moved = prescription_of(model, prescribed, integrator=method)
        self._options: dict[str, Any] = {"integrator": method, "record": True}
        self._options["sensors"] = self.made_with["sensors"] = sensors_of(sensors)
        values, numbers = split_parameters(model, law, given)
        self._options["law_numbers"] = tuple(numbers)
        self._parameters = tuple(values)
        policy = controls if callable(controls) else None
        drive, drive_constants = drive_and_constants(controls, model)
        self._plan_of: Callable[[str | None], StepPlan] = lambda frame: StepPlan.of(
            model, law, policy, drive, prescription, external_frame=frame, **self._options
        )
        self._plan = plan = self._plan_of(None)
        arrays = {name: _numbers(name, array, plan.argument_shapes[name]) for name, array in moved.items()}
        arrays |= {law_argument(name): number for name, number in numbers.items()}
        for name, value in values.items():
            arrays[name] = _numbers(name, value, np.shape(model.value(name)))
        arrays["dt"] = checked_time_step(to_host("dt", dt, "a Simulation"))
        arrays["start"] = checked_times("time", to_host("time", time, "a Simulation"))
        arrays["q"] = _numbers("q", model.neutral() if q is None else q, (model.nq,))
        arrays["v"] = _numbers("v", np.zeros(model.nv) if v is None else v, (model.nv,))
        self._follows_start = isinstance(controls, Servo) and controls.q_ref is None
        arrays |= drive_constants | _control_arrays(controls, plan, arrays["q"])
        self._make(arrays, seed)
        self._finish_start()

    def _make(self, arrays: dict[str, Array], seed: npt.ArrayLike) -> None:
        """Make the memory of all samples, bind the steps to it, and keep the start."""
        plan, model = self._plan, self.model
        own = plan.argument_shapes | {name: np.shape(model.value(name)) for name in self._parameters}
        axes = {name: value.shape[: value.ndim - len(own[name])] for name, value in arrays.items()}
        axes["seed"] = np.asarray(seed).shape
        batch = batch_of({name: shape for name, shape in axes.items() if shape})
        keys = stream_keys(seed, batch)
        if plan.sensors.draws:
            arrays["stream"] = keys
        carried = ArrayBlock({name: own[name] for name in plan.carried_results}, batch)
        held = ArrayBlock({name: own[name] for name in own if name not in carried.shapes}, batch)
        self._blocks = _Blocks(carried, held, carried.like(), held.like())
        for name, value in {**plan.initial, **arrays}.items():
            self._blocks[name][...] = value
        self._target = next((held.arrays[name] for name in TARGETS if name in held.arrays), None)
        self._time = np.zeros(batch)
        self._external = np.zeros((*batch, len(model.bodies), 6))
        self._runs: dict[bool, _Run] = {}
        self._run = self._run_with(external=False)
        self._results = dict(zip(plan.results, self._run.steps.outputs, strict=True))
        tau = self._results["tau"] if "tau" in self._results else held.arrays["tau"]
        self._views = {
            name: self._to_caller(array)
            for name, array in (
                ("q", carried.arrays["q"]),
                ("v", carried.arrays["v"]),
                ("time", self._time),
                ("tau", tau),
            )
        }
        self._readings = {
            name: self._to_caller(self._results[result]) for name, result in plan.sensors.results.items()
        }
        self._reports_overlap = "overlap" in carried.arrays and self._check != "off"
        self._clear_records(...)

    def _run_with(self, *, external: bool) -> _Run:
        """Return the steps with external forces, or without, which have kernels of their own."""
        found = self._runs.get(external)
        if found is None:
            plan = self._plan_of(self._frame) if external else self._plan
            blocks = self._blocks
            given = blocks.held.arrays | ({"external_forces": self._external} if external else {})
            outputs = self._run.steps.outputs if self._runs else None
            steps = rollout_kernel(plan, (), self._parameters).in_place(blocks.carried, given, outputs)
            ordered = "memory" in steps.state and self.batch and np.prod(self.batch) > steps.lanes
            found = self._runs[external] = _Run(steps, BlockOrder(steps) if ordered else None)
        return found

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the batch; () for one sample."""
        return self._blocks.carried.batch

    @property
    def q(self) -> Any:
        """The positions `(…, nq)`, in place."""
        return self._views["q"]

    @property
    def v(self) -> Any:
        """The velocities `(…, nv)`, in place."""
        return self._views["v"]

    @property
    def time(self) -> Any:
        """The time of each sample `(…)` [s], in place."""
        return self._views["time"]

    @property
    def tau(self) -> Any:
        """The joint forces of the last step `(…, nv)`, in place."""
        return self._views["tau"]

    @property
    def parameters(self) -> dict[str, Any]:
        """The values that the model was given, for each sample, by name, in place."""
        held, options = self._blocks.held.arrays, self._options["law_numbers"]
        return {
            name: self._to_caller(held[name]) for name in (*self._parameters, *map(law_argument, options))
        }

    @property
    def failed(self) -> Any:
        """The samples that failed, a mask `(…)`; they stay in their last valid state until they are reset."""
        return self._to_caller(np.asarray(self._blocks["fault"] > 0.0))

    @property
    def cause(self) -> Array:
        """Why each sample failed `(…)`, in words; "" for the others."""
        return np.asarray(np.array(CAUSES)[self._blocks["fault"].astype(int)])

    @property
    def sensors(self) -> Mapping[str, Any]:
        """The readings of the last step by the names of the sensors, in place; zero before the first."""
        return self._readings

    @property
    def contacts(self) -> ContactRecord | None:
        """The contact points of the last step, forces `(…, nc, 3)`; None without contact."""
        if self._plan.contact is None:
            return None
        rows = self._results.get("contact", np.full((*self.batch, 0, 8), ABSENT))
        return contact_record(self._plan.points if self._plan.pairs else (), rows)

    def step(
        self,
        controls: npt.ArrayLike | None = None,
        *,
        steps: int = 1,
        external_forces: npt.ArrayLike | None = None,
    ) -> None:
        """Take `steps` steps, in place.

        `controls`: joint forces, targets of the servo or control signals, as `controls` of the constructor
        says, for all samples or for each; they are held, also in later calls that give none.
        `external_forces` `(…, n_bodies, 6)` act during this call.

        Ctrl-C ends a long call early; the state is then that of the steps taken until then.
        """
        if controls is not None:
            self._hold(controls)
        if type(steps) is not int or steps < 1:
            steps = whole("steps", steps)
        self._run = run = self._runs[False] if external_forces is None else self._with_forces(external_forces)
        try:
            refused = run.steps.advance(steps, self._check)
        finally:
            self._tell_time()
        if refused is not None:
            self._blocks["fault"][refused] = CAUSES.index(REJECTED)
        if run.order is not None:
            run.order.update()
        if self._reports_overlap:  # the first step has looked for it
            self._reports_overlap = False
            report_overlap("Simulation", self._plan, self._blocks["overlap"])

    def reset(
        self,
        mask: npt.ArrayLike | None = None,
        q: npt.ArrayLike | None = None,
        v: npt.ArrayLike | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        """Begin anew, in place, with the samples for which `mask` `(…)` is true; None: with all.

        They start where they started when the simulation was made, or at `q` and `v`, for all samples or for
        each, or one row for each true element of the mask, at the time of the first start, with the controls
        of then, without faults and contact memory. `parameters`: new values for these samples of what the
        constructor was given; others stay.
        """
        key = self._index_of(mask)
        blocks, rows = self._blocks, {}
        for name, given in (("q", q), ("v", v)):
            rows[name] = self._rows(name, given, key)
        for name, given in self._new_parameters(parameters).items():
            rows[name] = self._rows(name, given, key)
        if self._plan.prescription is not None:
            start = blocks.start_of("start")[key]
            rows["q"], rows["v"] = self._plan.prescription.starts(self.model, start, rows["q"], rows["v"])
        bad = self._check_rows(rows["q"], rows["v"], key)
        kept = {*self._parameters, *map(law_argument, self._options["law_numbers"]), *GO_ON}
        for name in (*blocks.carried.arrays, *blocks.held.arrays):
            if name in rows or name not in kept:
                blocks[name][key] = rows.get(name, blocks.start_of(name)[key])
        if self._follows_start:
            blocks["q_ref"][key] = rows["q"]
        blocks["fault"][key] = np.where(bad, CAUSES.index(REJECTED), 0.0)
        self._clear_records(key)

    def state(self) -> dict[str, Array]:
        """Return copies of all arrays by which the simulation goes on, those of the start among them."""
        return self._blocks.copies()

    def set_state(self, state: Mapping[str, npt.ArrayLike]) -> None:
        """Go on from what `state` returned, of this simulation or of one that was made with the same
        arguments, bit for bit."""
        known = self._blocks.all()
        if missing := sorted(known.keys() ^ dict(state).keys()):
            raise UnknownNameError.of("array of the state of this simulation", missing[0], known)
        arrays = {name: np.asarray(state[name], np.float64) for name in known}
        for name, array in arrays.items():
            if array.shape != known[name].shape:
                raise ShapeError(
                    f'Simulation: "{name}" of the state has the shape {array.shape}, not '
                    f"{known[name].shape}; make the simulation with as many samples"
                )
        for name, array in arrays.items():
            known[name][...] = array
        self._clear_records(...)

    def save(self, path: str | Path) -> None:
        """Write the state, and what else `load` needs, to an `.npz` file."""
        from dalembert.simulation.simulation_files import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, model: Model, **given: Any) -> Self:
        """Return the simulation that `save` wrote; it goes on bit for bit.

        `given`: options of the constructor that a file does not hold, since they are functions or contact
        laws with pairs of shapes of their own: `controls`, `contact`, `prescribed`, `sensors`.
        """
        from dalembert.simulation.simulation_files import load

        found: Self = load(cls, Path(path), model, given)
        return found

    def __reduce__(self) -> Any:
        raise DtypeError(
            "a Simulation is bound to its memory and cannot be copied or pickled; make another one and give "
            "it the state: other.set_state(simulation.state())"
        )

    def __repr__(self) -> str:
        samples = f" x {self.batch[0]}" if len(self.batch) == 1 else f" x {self.batch}" if self.batch else ""
        failed = int(np.count_nonzero(self._blocks["fault"] > 0.0))
        return f'<Simulation of "{self.model.name}"{samples}{f", {failed} failed" if failed else ""}>'

    def _hold(self, controls: Any) -> None:
        """Take controls, for this call and later ones."""
        target = self._target
        if target is None:
            raise ArgumentError(
                "Simulation.step: this simulation has its controls from functions, compiled into the step; "
                "call step() without controls"
            )
        if type(controls) is not np.ndarray or controls.shape != target.shape or controls.dtype != np.float64:
            own = target.shape[len(self.batch) :]
            controls = _numbers("controls", controls, own)
            self._require_batch("controls", controls, own)
        target[...] = controls

    def _with_forces(self, external_forces: Any) -> _Run:
        own = self._external.shape[len(self.batch) :]
        forces = _numbers("external_forces", external_forces, own)
        self._require_batch("external_forces", forces, own)
        self._external[...] = forces
        return self._run_with(external=True)

    def _require_batch(self, name: str, values: Array, own: tuple[int, ...]) -> None:
        if common_batch([values.shape[: values.ndim - len(own)], self.batch]) != self.batch:
            raise ShapeError(
                f"{name} has the shape {values.shape}, but the simulation has {self.batch or 'one'} samples; "
                "samples are made with the simulation: give q with leading axes"
            )

    def _tell_time(self) -> None:
        blocks = self._blocks
        np.multiply(blocks["lasted"], blocks["dt"], out=self._time)
        np.add(self._time, blocks["start"], out=self._time)

    def _to_caller(self, array: Array) -> Any:
        """Return an array, or a tensor of its memory."""
        return importlib.import_module("torch").from_numpy(array) if self._in_torch else array

    def _index_of(self, mask: Any) -> Any:
        """Return the index of the samples that a mask chooses."""
        if mask is None:
            return ...
        chosen = np.asarray(to_host("mask", mask, "a Simulation"), bool)
        if chosen.shape != self.batch:
            raise ShapeError(
                f"Simulation.reset: the mask has the shape {chosen.shape}; expected {self.batch}, a truth "
                "value for each sample"
            )
        return chosen

    def _rows(self, name: str, given: Any, key: Any) -> Array:
        """Return the values with which chosen samples begin: given ones, or those of the first start."""
        blocks = self._blocks
        wanted = blocks[name][key].shape
        if given is None:
            return np.asarray(blocks.start_of(name)[key])
        own = blocks[name].shape[len(self.batch) :]
        values = _numbers(name, given, own)
        if values.shape == blocks[name].shape:
            values = values[key]
        try:
            return np.broadcast_to(values, wanted)
        except ValueError:
            raise ShapeError(
                f"Simulation.reset: {name} has the shape {values.shape}; expected {own}, or "
                f"{blocks[name].shape}, or {wanted} for the chosen samples"
            ) from None

    def _new_parameters(self, given: Mapping[str, object] | None) -> dict[str, Any]:
        """Return new values by the names of the step's arguments."""
        if not given:
            return {}
        found = {name: to_host(name, value, "a Simulation") for name, value in given.items()}
        known = (*self._parameters, *map(law_argument, self._options["law_numbers"]))
        for name in found:
            if name not in known:
                raise UnknownNameError.of("parameter that this simulation was made with", name, known)
        values, numbers = split_parameters(self.model, self._plan.contact, found)
        return values | {law_argument(name): number for name, number in numbers.items()}

    def _check_rows(self, q: Array, v: Array, key: Any) -> npt.NDArray[np.bool_]:
        """Return which starts of chosen samples are wrong, or refuse them."""
        bad = np.zeros(q.shape[: q.ndim - 1], bool)
        if self._check == "off":
            return bad
        if self._check == "raise":
            require_finite("q", q)
            require_finite("v", v)
        bad |= ~np.isfinite(np.concatenate([q, v], axis=-1)).all(axis=-1)
        values = {name: self._blocks[name][key] for name in self._parameters}
        start = self._blocks["start"][key]
        return bad | require_closed_loops(self.model, q, v, start, values, flag=self._check == "flag")

    def _finish_start(self) -> None:
        """Move prescribed joints where they begin, check the start and keep it."""
        blocks, prescription = self._blocks, self._plan.prescription
        if prescription is not None:
            found = prescription.starts(self.model, blocks["start"], blocks["q"], blocks["v"])
            blocks["q"][...], blocks["v"][...] = found
        bad = self._check_rows(blocks["q"], blocks["v"], ...)
        blocks["fault"][bad] = CAUSES.index(REJECTED)
        blocks.keep_start()

    def _clear_records(self, key: Any) -> None:
        """Forget the contacts and forces of the last step of chosen samples."""
        for name, array in self._results.items():
            array[key] = ABSENT if name == "contact" else 0.0
        self._tell_time()


@final
@dataclass(frozen=True, slots=True)
class _Run:
    """Steps that are bound, and the order of samples in their blocks."""

    steps: StepsInPlace
    order: BlockOrder | None


@final
@dataclass(frozen=True, slots=True)
class _Blocks:
    """The arrays of a simulation by name: what steps carry on, what they are given, and both at the start."""

    carried: ArrayBlock
    held: ArrayBlock
    first_carried: ArrayBlock
    first_held: ArrayBlock

    def __getitem__(self, name: str) -> Array:
        arrays = self.carried.arrays
        return arrays[name] if name in arrays else self.held.arrays[name]

    def start_of(self, name: str) -> Array:
        """Return what an array was at the start."""
        arrays = self.first_carried.arrays
        return arrays[name] if name in arrays else self.first_held.arrays[name]

    def keep_start(self) -> None:
        """Let the start be as the arrays are now."""
        self.first_carried.memory[:] = self.carried.memory
        self.first_held.memory[:] = self.held.memory

    def all(self) -> dict[str, Array]:
        """Return all arrays, those of the start under "start of NAME"."""
        now = self.carried.arrays | self.held.arrays
        first = self.first_carried.arrays | self.first_held.arrays
        return now | {f"start of {name}": array for name, array in first.items()}

    def copies(self) -> dict[str, Array]:
        """Return copies of all arrays."""
        return {name: array.copy() for name, array in self.all().items()}


def _check_arguments(
    model: object, controls: object, external_frame: str | None, parameters: object, check: str | None
) -> None:
    """Refuse arguments of the wrong kind."""
    if not isinstance(model, Model):
        raise no_model("Simulation", model)
    if parameters is not None and not isinstance(parameters, Mapping):
        raise DtypeError(
            f"Simulation: parameters is a dict of values by name, got {type(parameters).__name__}"
        )
    if controls is not None and not (callable(controls) or isinstance(controls, Servo | Actuators)):
        raise DtypeError(
            f"Simulation: controls is {type(controls).__name__}; give a Servo, Actuators or a policy, or "
            "None, and arrays of joint forces to simulation.step"
        )
    require_choice("external_frame", external_frame or "body", FORCE_FRAMES)
    require_choice("check", check or "raise", CHECKS)


def _numbers(name: str, given: Any, own: tuple[int, ...]) -> Array:
    """Return real numbers `(…, *own)` as float64; arrays of single precision are converted."""
    value = to_host(name, given, "a Simulation")
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        value = value.astype(np.float64, copy=False)
    return as_array(name, value, own)


def _control_arrays(controls: object, plan: StepPlan, q: Array) -> dict[str, Array]:
    """Return the first targets of a servo, control signals, or joint forces."""
    shapes, found = plan.argument_shapes, dict[str, Any]()
    if isinstance(controls, Servo):
        found["q_ref"] = q if controls.q_ref is None else controls.q_ref
        found["v_ref"] = controls.v_ref
    elif isinstance(controls, Actuators):
        found["ctrl"] = np.zeros(shapes.get("ctrl", ())) if controls.ctrl is None else controls.ctrl
    found.setdefault("tau", np.zeros(plan.model.nv))
    return {name: _numbers(name, value, shapes[name]) for name, value in found.items() if name in shapes}
