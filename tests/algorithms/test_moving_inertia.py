"""Joints that move no inertia: refused by name where the mass matrix is singular, at every q or at one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert import algorithms as al
from dalembert.algorithms.moving_inertia import inertia_loss, joint_without_inertia
from dalembert.errors import ModelError, StateError

R, P = da.Revolute, da.Prismatic
NOTHING = da.RigidInertia(0.0, (0.0, 0.0, 0.0), np.zeros((3, 3)))
SOLID = da.RigidInertia(1.0, (0.0, 0.0, 0.0), np.eye(3))
ROD = da.RigidInertia(1.0, (0.0, 0.0, 0.0), np.diag([1.0, 1.0, 0.0]))


def particle(*com: float) -> da.RigidInertia:
    return da.RigidInertia(1.0, com, np.zeros((3, 3)))


def chain(*links: tuple[Any, Any, tuple[float, float, float]], **options: Any) -> da.Model:
    """Joints j0, j1, … with (joint, inertia of the body, place in the parent)."""
    builder, parent = da.ModelBuilder(), "world"
    for k, (joint, inertia, place) in enumerate(links):
        placement = da.Transform.from_rotation_translation(np.eye(3), place)
        builder.add_body(f"b{k}", parent, joint, f"j{k}", inertia=inertia, placement=placement, **options)
        parent = f"b{k}"
    return builder.build()


O = (0.0, 0.0, 0.0)
X = (1.0, 0.0, 0.0)

SINGULAR: dict[str, tuple[da.Model, str]] = {
    "massless leaf": (chain((R(X), particle(0, 1, 0), O), (R(X), NOTHING, X)), "j1"),
    "particle on its axis": (chain((R((0, 0, 1)), particle(0, 0, 1), O)), "j0"),
    "particle on the second axis": (
        chain((R((0, 1, 0)), SOLID, O), (R((0, 0, 1)), particle(0, 0, 2), X)), "j1"
    ),
    "four joints and a particle": (
        chain((R((0, 0, 1)), NOTHING, O), (R((0, 1, 0)), NOTHING, X), (R(X), NOTHING, (0, 1, 0)),
              (R((0, 1, 0)), particle(1, 0, 0), X)),
        "j0",
    ),
    "two joints on one axis": (chain((R((0, 0, 1)), NOTHING, O), (R((0, 0, 1)), SOLID, O)), "j0"),
    "two slides along one axis": (chain((P(X), NOTHING, O), (P(X), SOLID, O)), "j0"),
    "free particle": (chain((da.Free(), particle(0, 0, 0), O)), "j0"),
    "free rod": (chain((da.Free(), ROD, O)), "j0"),
    "ball joint at a particle": (chain((da.Spherical(), particle(0, 0, 0), O)), "j0"),
}  # fmt: skip

GIMBAL = chain((R((0, 0, 1)), NOTHING, O), (R((0, 1, 0)), NOTHING, O), (R(X), SOLID, O))
FOLDING = chain((R((0, 1, 0)), NOTHING, O), (R((0, 1, 0)), particle(1, 0, 0), X))
EULER = chain((da.joints.SphericalEuler("zyx"), SOLID, O))

SOMEWHERE: dict[str, tuple[da.Model, list[float], str]] = {
    "gimbal of massless rings": (GIMBAL, [0.3, np.pi / 2, 0.2], "j0"),
    "particle folded onto the first axis": (FOLDING, [0.4, np.pi], "j0"),
    "gimbal lock of Euler angles": (EULER, [0.3, np.pi / 2, 0.1], "j0"),
}

Function = Callable[[da.Model, Any, Any, Any], Any]

DIVIDING: dict[str, Function] = {
    "forward_dynamics": da.forward_dynamics,
    "crba": lambda m, q, v, tau: da.forward_dynamics(m, q, v, tau, method="crba"),
    "gauss": lambda m, q, v, tau: da.forward_dynamics(m, q, v, tau, method="gauss"),
    "sparse": lambda m, q, v, tau: da.forward_dynamics(m, q, v, tau, method="sparse"),
    "inverse_mass_matrix": lambda m, q, v, tau: da.inverse_mass_matrix(m, q),
    "derivatives": da.forward_dynamics_derivatives,
    "hybrid": lambda m, q, v, tau: da.dynamics.hybrid_dynamics(m, q, v, tau, tau, prescribed=()),
    "hybrid matrix": lambda m, q, v, tau: da.dynamics.hybrid_dynamics(m, q, v, tau, tau, method="matrix"),
    "hamiltonian": lambda m, q, v, tau: da.geometry.hamiltonian(m, q, v),
    "hamiltonian_rates": da.geometry.hamiltonian_rates,
    "velocity_coordinates": lambda m, q, v, tau: da.geometry.velocity_coordinates(m, q, v),
    "geodesic_acceleration": lambda m, q, v, tau: da.geometry.geodesic_acceleration(m, q, v),
    "operational_inertia": lambda m, q, v, tau: da.control.operational_inertia(m, q, "b0"),
    **{
        f"step {name}": lambda m, q, v, tau, name=name: da.step(m, q, v, tau, 0.01, integrator=name)
        for name in ("semi_implicit", "rk4", "heun", "implicit", "variational")
    },
}  # fmt: skip


@pytest.mark.parametrize("function", DIVIDING)
@pytest.mark.parametrize("name", SINGULAR)
def test_a_matrix_that_is_singular_at_every_q_is_refused_with_the_joint(name: str, function: str) -> None:
    model, joint = SINGULAR[name]
    q, v = model.random_state(1)
    with pytest.raises(ModelError, match=f'joint "{joint}"'):
        DIVIDING[function](model, q, v, np.ones(model.nv))


@pytest.mark.parametrize("contact", [None, "rigid", "compliant"])
@pytest.mark.parametrize("name", SINGULAR)
def test_rollouts_of_such_models_are_refused(name: str, contact: str | None) -> None:
    model, joint = SINGULAR[name]
    q, v = model.random_state(1)
    with pytest.raises(ModelError, match=f'joint "{joint}"'):
        da.rollout(model, q, v, steps=3, contact=contact)


@pytest.mark.parametrize("function", DIVIDING)
@pytest.mark.parametrize("name", SOMEWHERE)
def test_a_configuration_in_which_the_matrix_is_singular_is_refused_or_flagged(
    name: str, function: str
) -> None:
    """The joint and the sample are named; samples beside it keep their bits."""
    model, bad, joint = SOMEWHERE[name]
    call, tau = DIVIDING[function], np.ones(model.nv)
    good, v = model.random_state(3)
    call(model, good, v, tau)
    with pytest.raises(StateError, match=f'in this configuration .*joint "{joint}"'):
        call(model, np.array(bad), v, tau)
    with pytest.raises(StateError, match=r"sample \(2,\)"):
        call(model, np.array([good, good, bad, good]), v, tau)


def test_flagged_and_unchecked_rows() -> None:
    model, bad, _ = SOMEWHERE["gimbal lock of Euler angles"]
    good, v = model.random_state(3)
    rows, tau = np.array([good, bad, good]), np.ones(3)
    wanted = da.forward_dynamics(model, good, v, tau)
    flagged = da.forward_dynamics(model, rows, v, tau, check="flag")
    assert np.isnan(flagged[1]).all()
    unchecked = da.forward_dynamics(model, rows, v, tau, check="off")
    for result in (flagged, unchecked):
        np.testing.assert_array_equal(result[[0, 2]], [wanted, wanted])
    single = da.forward_dynamics(model, rows.astype(np.float32), v.astype(np.float32), tau.astype(np.float32),
                                 check="flag")  # fmt: skip
    assert np.isnan(single[1]).all()
    assert np.isfinite(single[[0, 2]]).all()
    with pytest.raises(StateError, match="in this configuration"):
        da.compile(da.forward_dynamics, model)(bad, v, tau)
    with pytest.raises(StateError, match="in this configuration"):
        da.compile(da.forward_dynamics, model).jacobian("q")(bad, v, tau)


def test_joints_with_armature_prescribed_motion_or_run_time_inertia_are_computed() -> None:
    """What makes the matrix regular is seen, and what is not known yet is not refused."""
    held = chain((R(X), particle(0, 1, 0), O), (R(X), NOTHING, X), armature=0.1)
    assert np.isfinite(da.forward_dynamics(held, np.zeros(2), np.zeros(2), np.ones(2))).all()
    model, joint = SINGULAR["particle on the second axis"]
    zero, one = np.zeros(2), np.ones(2)
    a, tau = da.dynamics.hybrid_dynamics(model, zero, zero, one, one, prescribed=[joint])
    assert np.isfinite([a, tau]).all()
    later = da.compile(da.forward_dynamics, model, parameters=("b1.inertia",))
    assert np.isfinite(later(zero, zero, one, parameters={"b1.inertia": np.eye(3)})).all()


@pytest.mark.parametrize(
    "name",
    ["pendulum", "double_pendulum", "two_link_arm", "cart_pole", "arm6", "arm7", "quadruped", "four_bar"],
)
def test_models_that_cannot_be_singular_pay_nothing(name: str) -> None:
    model = getattr(da.models, name)()
    q = [da.scalar.sin(1.0)] * model.nq
    assert inertia_loss(model.tree(), q) == 0.0
    assert type(inertia_loss(model.tree(), q)) is float
    assert joint_without_inertia(model) is None


@pytest.mark.parametrize("seed", range(5))
def test_random_trees_are_regular(seed: int) -> None:
    """No false alarm: every joint type, light links and long chains."""
    model = da.models.random_tree(seed, bodies=12)
    assert joint_without_inertia(model) is None
    q, v = model.random_state(seed)
    assert np.isfinite(da.forward_dynamics(model, q, v, np.ones(model.nv))).all()


def test_long_chains_of_massless_links_are_no_false_alarm() -> None:
    """Rounding in the pivots stays far from the bound: 60 links, every other one massless."""
    links = [(R((0, 1, 0) if k % 2 else (0, 0, 1)), SOLID if k % 2 else NOTHING, X) for k in range(60)]
    model = chain(*links)
    q, v = model.random_state(0)
    assert inertia_loss(model.tree(), q.tolist()) < 1e3
    assert np.isfinite(al.inverse_mass_matrix(model, q.tolist())).all()
    assert np.isfinite(da.forward_dynamics(model, q, v, np.ones(model.nv))).all()
