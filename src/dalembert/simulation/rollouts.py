"""`da.rollout`: many steps of simulated time in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy.typing as npt

from dalembert.algorithms.applied_forces import FORCE_FRAMES
from dalembert.api.calls import Array, Check, checked_time_step
from dalembert.compiler.execution import CHECKS
from dalembert.compiler.library import no_model
from dalembert.control import Actuators, Belt, MotionFunction, Servo
from dalembert.errors import ArgumentError, DtypeError, require_choice, require_flag
from dalembert.host import warn_renamed
from dalembert.host.foreign_arrays import is_on_gpu
from dalembert.model.model import Model
from dalembert.simulation.actuator_drive import drive_and_constants
from dalembert.simulation.drives import Callback, Policy
from dalembert.simulation.host_rollouts import (
    Contact,
    RolloutRequest,
    checked_contact,
    checked_integrator,
    checked_steps,
    checked_times,
    require_function,
    rollout_on_host,
    split_parameters,
    whole,
)
from dalembert.simulation.observers import Observe, observers_of, require_contact, require_own_names
from dalembert.simulation.prescription import prescription_of
from dalembert.simulation.sensors import split_sensors
from dalembert.simulation.step_plan import StepPlan
from dalembert.simulation.trajectory import Trajectory


def rollout(
    model: Model,
    q0: npt.ArrayLike,
    v0: npt.ArrayLike,
    controls: npt.ArrayLike | Policy | Servo | Actuators | None = None,
    steps: int | None = None,
    dt: npt.ArrayLike = 0.002,
    *,
    contact: Contact = None,
    integrator: str | None = None,
    callback: Callback | None = None,
    prescribed: Mapping[str, npt.ArrayLike | MotionFunction | Belt] | None = None,
    external_forces: npt.ArrayLike | None = None,
    external_frame: str = "body",
    observe: Observe = (),
    every: int = 1,
    record_contacts: bool = True,
    parameters: Mapping[str, object] | None = None,
    reset: npt.ArrayLike | None = None,
    time: npt.ArrayLike = 0.0,
    out: tuple[Array, Array] | None = None,
    check: Check = None,
    progress: Callable[[int, int], None] | None = None,
    seed: npt.ArrayLike = 0,
    start: float | None = None,
) -> Trajectory:
    """Simulate `steps` steps of dt [s] from (q0, v0).

    x_(k+1) = f(x_k, tau_k), f a step of the integrator, or of contact. Kinematics, contact, dynamics and
    integration are one kernel, which takes all steps of a sample in one call, many samples side by side.

    q0 `(…, nq)`, v0 `(…, nv)`; dt a number, or one for each sample `(…,)`. `controls`: the joint forces tau
    [N m, N]: None for zero, `(nv,)` held throughout, `(…, steps, nv)` step by step, `(…, 1, nv)` held but
    different from sample to sample; or a *policy*, a function `f(model, t, q, v)` of generic scalars that
    returns tau, and is compiled into the step; or a `da.control.Servo`, PD control of joints, implicit in
    the step; or `da.control.Actuators`, control signals of the model's actuators. `callback(t, q, v)`,
    instead of controls, is called in Python before each step with the time and the arrays of all samples, and
    returns tau; that is slow. A policy is evaluated at every stage of "rk4", "heun" and "variational", which
    keep their order with it, and where the step begins by other integrators and in contact. Arrays, callbacks
    and control signals are held during a step. tau of a frame is that at the start of its last step.

    `prescribed`: joints that move as given, by their names, under any force: driven linkages, perfect
    servos, platforms, belts. A motion is a function of (model, t) on generic scalars that returns the
    joint's positions; it is differentiated exactly, and the joint begins where it begins (q0 and v0 are not
    read there). Or it is an array of positions at the end of each step, `(…, steps, nq)` of the joint, with
    the mean velocity of each step, or `(nq,)`, held; or a `da.control.Belt`. The other joints follow by
    hybrid dynamics. tau of a frame has the forces that moved the joints so, in place of what `controls` say:
    with contact the mean of the last step, else those at its start.

    `contact`: None (joints alone: no limits), "rigid" or "compliant", or a `da.contact.Rigid` or
    `da.contact.Compliant` with its options, or a `da.contact.Law`: a law of surfaces, your own among them.
    `integrator`: of `da.step`, where there is no contact, by default "midpoint"; a step with contact is
    semi-implicit, springs and damping of joints are implicit in it, and centres of mass of what touches
    nothing move by the mean of their velocities before and after. `external_forces` on the bodies,
    `(n_bodies, 6)` held throughout, `(…, steps, n_bodies, 6)` step by step, or `(…, 1, n_bodies, 6)` held,
    sample by sample; in the frame `external_frame`: "body", "world", or "center", along world axes at the
    centre of mass of each body.

    `observe`: "energy" [J], "momentum" (about the centre of mass), "constraint_error", "contact_forces"
    `(…, T+1, n_bodies, 3)` (their sums on bodies [N]), "contact_work" (accumulated from the start [J]),
    functions of your own of (model, t, q, v), {"name": f}, and sensors of `da.sensors`, whose first frame is
    NaN; their random numbers are those of `seed`, a whole number or one for each sample. `every`: the number
    of steps per frame; forces and contacts of a frame are those of its last step. `record_contacts=False`
    leaves out the record of contact points. `parameters`: values of the model, as in `da.compile`, one for
    all samples or one for each; friction and restitution of its shapes, "cube.contact_friction" and
    "cube.restitution", and numbers of the contact law, such as "contact.stiffness", "contact.tolerance" or
    "contact.rebound_speed", are among them, and nothing is compiled again where they change.
    `reset (…, steps)`: where it is not zero, a sample restarts before that step: from its q0 and v0, at the
    time `time`, without cached contact impulses and faults.
    `time` [s]: that of the first frame, a number, or one for each sample `(…,)`. `out`: two arrays for the
    frames of q and v, `(…, T+1, nq)` and `(…, T+1, nv)`. `check`: "raise" refuses a start that is not finite,
    with a quaternion that is not of unit norm or with open loops; "flag" makes the frames of such samples NaN
    and reports them in `failed_at`; "off" checks nothing. `progress(done, steps)` is called several times a
    second. `start` is the former name of `time`.

    A sample whose step is not finite, or whose velocities exceed 1e6, stays in its last valid state, and is
    reported in `failed_at` and `cause` of the trajectory; the others continue. A sample that gains energy
    which no work explains is reported, too (`energy_gain`). Ctrl-C ends a rollout early: the trajectory has
    the frames until then. Shapes that overlap at the start are reported, and separated without a push, by
    compliant contact at 0.25 m/s where they are very deep. Loops must be closed at the start, and the
    velocities must keep them closed.

    >>> model = da.models.pendulum(length=1.0)
    >>> swing = da.rollout(model, [0.1], [0.0], steps=2000, dt=0.001, every=500, integrator="rk4")
    >>> print(np.abs(swing.q[:, 0] - 0.1 * np.cos(np.sqrt(9.81) * swing.time)).max() < 1e-3)
    True
    >>> damped = da.rollout(model, [0.1], [0.0], lambda model, t, q, v: [-2.0 * v[0]], steps=5000, dt=0.001)
    >>> print(damped.energy()[-1] < damped.energy()[0])
    True
    """
    if not isinstance(model, Model):
        raise no_model("rollout", model)
    span = checked_time_step(dt)
    spacing = whole("every", every)
    count = checked_steps(steps, controls, spacing)
    sensors, rest = split_sensors(observe)
    observers = observers_of(rest)
    require_own_names(sensors, observers)
    law = checked_contact(contact)
    if parameters is not None and not isinstance(parameters, Mapping):
        raise DtypeError(f"rollout: parameters is a dict of values by name, got {type(parameters).__name__}")
    values, law_numbers = split_parameters(model, law, parameters or {})
    require_contact(observers, contact)
    if callback is not None and controls is not None:
        raise ArgumentError("rollout: give controls or a callback, not both")
    require_function("callback", callback, "t, q, v")
    require_function("progress", progress, "done, steps")
    require_choice("external_frame", external_frame, FORCE_FRAMES)
    method = checked_integrator(integrator, law)
    prescription, moved = prescription_of(model, prescribed, integrator=method)
    drive, drive_constants = drive_and_constants(controls, model)
    plan = StepPlan.of(
        model,
        law,
        controls if callable(controls) else None,
        drive,
        prescription,
        integrator=method,
        external_frame=None if external_forces is None else external_frame,
        record=require_flag("rollout: record_contacts", record_contacts),
        work="contact_work" in observers,
        loads="contact_forces" in observers,
        resets=reset is not None,
        law_numbers=tuple(law_numbers),
        sensors=sensors,
    )
    given = {"q0": q0, "v0": v0, "controls": controls, "external_forces": external_forces, "reset": reset}
    targets: tuple[object, ...] = ()
    if isinstance(controls, Servo):
        targets = controls.q_ref, controls.v_ref
    elif isinstance(controls, Actuators):
        targets = (controls.ctrl,)
    if start is not None:
        time = checked_times("start", start)
        warn_renamed("rollout", "start", "time")
    if check is not None:
        require_choice("check", check, CHECKS)
    begin = checked_times("time", time)
    asked = RolloutRequest(
        plan,
        given,
        moved,
        span,
        begin,
        count,
        spacing,
        values,
        law_numbers,
        observers,
        callback,
        progress,
        out,
        check,
        seed,
        drive_constants,
    )
    numbers = (*asked.parameters.values(), *asked.law_numbers.values())
    arrays = (*given.values(), dt, *targets, *moved.values(), *numbers)
    if any(is_on_gpu(value) for value in arrays):
        from dalembert.simulation.gpu_rollouts import rollout_on_gpu  # which needs a GPU

        return rollout_on_gpu(asked)
    return rollout_on_host(asked)
