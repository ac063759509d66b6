"""Digest the code that is generated for public functions, to show that a refactoring changes none of it.

    python benchmarks/generated_code.py > before.txt          # and, after the change,
    python benchmarks/generated_code.py | diff before.txt -   # prints the functions whose code changed

A row gives the SHA-256 of the LLVM assembly text that the code generator hands to LLVM. The text is caught at
LLVM's door, so that the digests depend on nothing but the code itself, and compilation ends there: all rows
take about two minutes. Names that hold digests of the source are left out of the text.
"""

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

os.environ["DALEMBERT_CACHE_DIR"] = tempfile.mkdtemp()

import llvmlite.binding as llvm
import numpy as np

import dalembert as da

BATCH = 64
"""Rows of a batch: more than the widest lanes hold, so that the code for lanes is generated."""

STEP_LINES = 5_000
"""Texts of a rollout with contact that are shorter find the distances at its start; the step is longer."""

TREE_PASSES = ("inverse_dynamics", "forward_dynamics", "gravity_forces", "bias_forces", "kinetic_energy")
"""Functions of a tree so large that it is compiled as loops over tables."""


class Caught(BaseException):
    """The text of a module, raised in place of its compilation."""


parse_assembly = llvm.parse_assembly


def catch(least_lines: int) -> Callable[..., Any]:
    """Return a stand-in for `llvmlite.binding.parse_assembly` that lets shorter texts pass."""

    def parse(text: str, *args: Any, **options: Any) -> Any:
        if text.count("\n") < least_lines:
            return parse_assembly(text, *args, **options)
        raise Caught(re.sub(r"[0-9a-f]{16,}", "", text))

    return parse


def models() -> dict[str, da.Model]:
    """Return the models by name."""
    return {
        "arm6": da.models.arm6(),
        "humanoid": da.models.humanoid(),
        "quadruped": da.models.quadruped(),
        "four_bar": da.models.four_bar(),
        "random_tree": da.models.random_tree(3, bodies=12),
        "chain_200": da.models.gu(200),
    }


def calls(name: str, model: da.Model) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Return calls of public functions on one sample and on a batch."""
    q, v = model.random_state(1)
    unit = np.ones(model.nv)
    forces = np.ones((len(model.bodies), 6))
    frame = model.bodies[-1].name
    functions: dict[str, Callable[[Any, Any], Any]] = {
        "inverse_dynamics": lambda q, v: da.inverse_dynamics(model, q, v, unit, check="off"),
        "inverse_dynamics, external": lambda q, v: da.inverse_dynamics(model, q, v, unit, forces),
        "forward_dynamics": lambda q, v: da.forward_dynamics(model, q, v, unit),
        "forward_dynamics, world": lambda q, v: da.forward_dynamics(
            model, q, v, unit, forces, external_frame="world"
        ),
        "mass_matrix": lambda q, v: da.mass_matrix(model, q),
        "inverse_mass_matrix": lambda q, v: da.inverse_mass_matrix(model, q),
        "bias_forces": lambda q, v: da.bias_forces(model, q, v),
        "gravity_forces": lambda q, v: da.gravity_forces(model, q),
        "coriolis_matrix": lambda q, v: da.geometry.coriolis_matrix(model, q, v),
        "passive_forces": lambda q, v: da.passive_forces(model, q, v),
        "forward_kinematics": lambda q, v: da.forward_kinematics(model, q),
        "jacobian": lambda q, v: da.jacobian(model, q, frame),
        "jacobian_rate": lambda q, v: da.kinematics.jacobian_rate(model, q, v, frame),
        "center_of_mass": lambda q, v: da.dynamics.center_of_mass(model, q),
        "centroidal_momentum_matrix": lambda q, v: da.dynamics.centroidal_momentum_matrix(model, q),
        "kinetic_energy": lambda q, v: da.dynamics.kinetic_energy(model, q, v),
        "potential_energy": lambda q, v: da.dynamics.potential_energy(model, q),
        "integrate": lambda q, v: da.integrate(model, q, v),
        "regressor": lambda q, v: da.identification.inverse_dynamics_regressor(model, q, v, unit),
        "maximal_jacobians": lambda q, v: da.cartesian.maximal_jacobians(model, q),
        "hybrid_dynamics": lambda q, v: da.dynamics.hybrid_dynamics(
            model, q, v, unit, unit, prescribed=[model.joints[0].name]
        ),
        "constraint_jacobian": lambda q, v: da.constraints.constraint_jacobian(model, q),
        "constraint_forces": lambda q, v: da.constraints.constraint_forces(model, q, v, unit),
        "feedback_linearization": lambda q, v: da.control.feedback_linearization(
            model, q, v, q, stiffness=10.0
        ),
        "stable_pd": lambda q, v: da.control.stable_pd(model, q, v, q, kp=10.0, kd=1.0, dt=0.01),
        "christoffel_symbols": lambda q, v: da.geometry.christoffel_symbols(model, q),
        "geodesic_acceleration": lambda q, v: da.geometry.geodesic_acceleration(model, q, v),
    }
    if name in ("arm6", "humanoid", "random_tree"):
        functions |= {
            "inverse_dynamics_derivatives": lambda q, v: da.inverse_dynamics_derivatives(model, q, v, unit),
            "forward_dynamics_derivatives": lambda q, v: da.forward_dynamics_derivatives(model, q, v, unit),
            "vjp": lambda q, v: da.vjp(da.compile(da.inverse_dynamics, model), "q", "v")(q, v, unit, unit),
        }
    for integrator in ("semi_implicit", "rk4", "midpoint", "implicit", "variational"):
        functions[f"step, {integrator}"] = lambda q, v, kind=integrator: da.step(
            model, q, v, unit, 1e-3, integrator=kind
        )
    for method in ("aba", "crba", "aba_spatial", "range_space", "null_space", "direct", "sparse"):
        functions[f"forward_dynamics, {method}"] = lambda q, v, kind=method: da.forward_dynamics(
            model, q, v, unit, method=kind
        )
    if name == "chain_200":  # passes of trees as loops over tables
        functions = {key: functions[key] for key in TREE_PASSES}
    for title, function in functions.items():
        yield title, lambda f=function: f(q, v)
        yield f"{title}, batch", lambda f=function: f(np.tile(q, (BATCH, 1)), np.tile(v, (BATCH, 1)))
    if name in ("humanoid", "quadruped"):
        yield from rollouts(model, q, v)


def rollouts(model: da.Model, q: Any, v: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Return rollouts without contact, and with the ground under both laws."""
    ground = model.with_ground()
    servo = da.control.Servo(kp=100.0, kd=10.0)
    yield "rollout", lambda: da.rollout(model, q, v, servo, steps=2, dt=0.002)
    for law in (da.contact.Rigid(self_collision=False), da.contact.Compliant(self_collision=False)):
        for rows in (1, BATCH):
            yield (
                f"rollout, {type(law).__name__}, {rows}",
                lambda law=law, rows=rows: da.rollout(
                    ground,
                    np.tile(q, (rows, 1)),
                    np.tile(v, (rows, 1)),
                    servo,
                    steps=2,
                    dt=0.002,
                    contact=law,
                ),
            )


def main() -> None:
    """Print a row for each function and model; words on the command line choose models."""
    for name, model in models().items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        for title, call in calls(name, model):
            llvm.parse_assembly = catch(STEP_LINES if "rollout, " in title else 0)
            try:
                call()
                found = "no code"
            except Caught as caught:
                text = str(caught)
                found = f"{len(text.splitlines()):>7} lines  {hashlib.sha256(text.encode()).hexdigest()[:16]}"
            except da.errors.DalembertError as error:
                found = f"refused: {type(error).__name__}"
            print(f"{name:12} {title:44} {found}", flush=True)


main()
