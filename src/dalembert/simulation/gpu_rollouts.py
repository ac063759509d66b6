"""`da.rollout` of arrays on a GPU: one launch, and a trajectory of arrays there.

Nothing is checked before or after the steps, since that would wait for the GPU: states that are not
finite, loops that are open, shapes that overlap at the start and energy that no work explains are not
reported, and failed samples are found in `failed_at` and `cause`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dalembert.call.arguments import pick_dtype
from dalembert.call.cuda.device_arrays import Arithmetic
from dalembert.compiler.gpu_calls import GpuRollout
from dalembert.errors import ArgumentError
from dalembert.host.foreign_arrays import is_on_gpu, library_of, require_library, rollout_bridge_of
from dalembert.simulation.host_rollouts import RolloutRequest
from dalembert.simulation.observers import IN_STEPS
from dalembert.simulation.step_function import CAUSES, rollout_kernel
from dalembert.simulation.step_plan import StepPlan
from dalembert.simulation.trajectory import ContactRecord, Trajectory

STARTS: Final[dict[str, str | float]] = {"q": "q", "v": "v", "work": 0.0, "loads": 0.0}
"""Results whose frames begin with the start, and their values there: an argument, or a number."""

NO_FAULT: Final = 1e9
"""A number greater than that of any fault."""

UNWANTED: Final = ("lasted", "fault", "memory", "account", "driven", "targets")
"""Carried values that no frame holds."""


def rollout_on_gpu(asked: RolloutRequest) -> Trajectory:
    """Take all steps in one launch."""
    _refuse(asked)
    plan = replace(asked.plan, watch=False)  # its pass costs a sixth of the speed of contact steps there
    q, v = asked.given["q0"], asked.given["v0"]
    asked, inputs = replace(asked, plan=plan), asked.inputs(q)
    values = asked.initial(q, v) | {name: item.values for name, item in inputs.items()} | {**asked.parameters}
    known = [(name, value) for name, value in values.items() if is_on_gpu(value)]
    kind = _arithmetic([value for _, value in known])
    for name, value in known:
        require_library(name, value, library_of(known[0][1]) or "")
    dtype = pick_dtype(known)
    watched = next((name for name, value in known if kind.is_watched(value)), None)
    if watched is not None:
        raise ArgumentError(
            f"rollout: {watched} requires gradients, which do not pass through a rollout; call da.step in a "
            "loop, or the rollout under torch.no_grad()"
        )
    if "reset" in values and is_on_gpu(values["reset"]):
        values["reset"] = kind.cast(values["reset"], dtype)
    streams = tuple(
        name
        for name, item in inputs.items()
        if not item.held and np.ndim(values[name]) > len(plan.argument_shapes[name])
    )
    kernel = rollout_kernel(plan, streams, tuple(asked.parameters), dtype)
    starts = {number: STARTS[name] for number, name in enumerate(plan.results) if name in STARTS}
    run = kernel.on_gpu(values, steps=asked.steps, every=asked.every, starts=starts, unwanted=UNWANTED)
    return _trajectory(asked, plan, run, kind, values, streams, dtype)


def on_host(trajectory: Trajectory) -> Trajectory:
    """Copy a trajectory to the host, causes in words."""

    def to_host(value: Any) -> Any:
        return _arithmetic([value]).to_host(value) if is_on_gpu(value) else value

    contacts = trajectory.contacts
    if contacts is not None:
        arrays = (contacts.force, contacts.position, contacts.gap)
        contacts = ContactRecord(contacts.names, *map(to_host, arrays))
    return replace(
        trajectory,
        **{name: to_host(getattr(trajectory, name)) for name in ("time", "q", "v", "tau")},
        contacts=contacts,
        observed={name: to_host(value) for name, value in trajectory.observed.items()},
        failed_at=to_host(trajectory.failed_at).astype(int),
        cause=np.array(CAUSES)[to_host(trajectory.cause).astype(int)],
        energy_gain=to_host(trajectory.energy_gain),
        parameters={name: np.asarray(to_host(value)) for name, value in trajectory.parameters.items()},
    )


def _arithmetic(values: Sequence[object]) -> Arithmetic:
    """Return the arithmetic of arrays on a GPU, by the first of them."""
    found: Arithmetic = rollout_bridge_of(values[:1]).arithmetic(values)
    return found


def _refuse(asked: RolloutRequest) -> None:
    if asked.callback is not None:
        raise ArgumentError(
            "rollout: a callback is called on the host before each step; on a GPU give controls, a policy or "
            "a Servo, or call da.step in a loop"
        )
    if asked.check not in (None, "off"):
        raise ArgumentError(
            f'rollout: check="{asked.check}" would have to wait for the GPU; check the start with '
            "da.forward_kinematics(model, q0, check=…), or leave check out"
        )
    if asked.out is not None:
        raise ArgumentError("rollout: out is for arrays on the host; a GPU's frames have memory of their own")
    others = [name for name in asked.observers if name not in IN_STEPS]
    if asked.plan.sensors.sensors:
        raise ArgumentError(
            f'rollout: the sensor "{asked.plan.sensors.sensors[0][0]}" is not read on a GPU; give arrays on '
            "the host"
        )
    if others:
        raise ArgumentError(
            f'rollout: "{others[0]}" is not observed on a GPU; compute it from the frames, for instance '
            "da.dynamics.kinetic_energy(model, trajectory.q, trajectory.v)"
        )


def _trajectory(
    asked: RolloutRequest,
    plan: StepPlan,
    run: GpuRollout,
    kind: Arithmetic,
    values: Mapping[str, Any],
    streams: Sequence[str],
    dtype: str,
) -> Trajectory:
    steps, every = asked.steps, asked.every
    batch, frames = run.batch, steps // every
    found = dict(zip(plan.results, run.outputs, strict=True))

    def on_gpu(value: Any) -> Any:
        """Put numbers of the host beside the results."""
        return value if is_on_gpu(value) else kind.beside(np.asarray(value, dtype), found["q"])

    if "tau" in values and "tau" not in found:
        tau = on_gpu(values["tau"])
        if "tau" in streams and tau.shape[-2] > 1:
            tau = tau[..., every - 1 :: every, :]
        found["tau"] = kind.expand(tau, (*batch, frames, plan.model.nv))
    dt, start, clock = values["dt"], values["start"][..., np.newaxis], np.arange(0, steps + 1, every)
    if is_on_gpu(dt):
        time = (on_gpu(start) if start.size > 1 else start.item()) + dt[..., None] * on_gpu(clock)
    else:
        time = start + np.asarray(dt)[..., np.newaxis] * clock
    record = None
    if plan.record and plan.contact is not None and plan.pairs:
        rows = found["contact"]
        chosen = tuple(("touching", str(k + 1)) for k in range(plan.kept_points))
        record = ContactRecord(chosen, rows[..., 1:4], rows[..., 4:7], rows[..., 7])
    observed = {
        name: found[result]
        for name, result in (("contact_work", "work"), ("contact_forces", "loads"))
        if result in found
    }
    fault, lasted = run.state["fault"], run.state["lasted"]
    return Trajectory(
        model=plan.model,
        time=time,
        q=found["q"],
        v=found["v"],
        tau=found["tau"],
        contacts=record,
        observed=observed,
        failed_at=kind.where(fault > 0.0, lasted, -1.0),
        cause=fault,
        energy_gain=kind.where(fault > NO_FAULT, fault, 0.0),  # zeros: energy is not watched
        parameters=dict(asked.parameters),
    )
