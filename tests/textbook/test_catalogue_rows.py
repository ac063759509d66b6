"""Statements about motions over time, where the equations at one instant alone would prove less."""

import math

import numpy as np
import pytest

import dalembert as da
from dalembert.scalar import asin, cos, sin

CRANK, ROD = 0.25, 0.8


def slider_crank(*, explicit: bool, branch: float = 1.0) -> da.Model:
    """The bundled linkage; `explicit`: with its loop solved by the law of sines, q = gamma(crank angle), the
    slider before the crank (`branch` 1) or behind it (-1).
    """
    plain = da.models.slider_crank(crank=CRANK, rod=ROD)
    builder = da.ModelBuilder(gravity=plain.gravity.to_list())
    for body in plain.bodies:
        parent = "world" if body.parent < 0 else plain.bodies[body.parent].name
        builder.add_body(
            body.name, parent, body.joint, body.joint_name, placement=body.placement, inertia=body.inertia
        )
    loop = plain.loops["slider_pin"]
    builder.add_loop(
        "slider_pin", "rod", "slider", loop.joint, loop.placement_predecessor, loop.placement_successor
    )
    if explicit:

        def gamma(model, y):
            lean = asin(CRANK / ROD * sin(y[0])) * branch + (0.5 - 0.5 * branch) * math.pi
            return [y[0], -y[0] - lean, CRANK * cos(y[0]) + ROD * cos(lean) - CRANK - ROD]

        builder.set_loop_closure(gamma, ["crank_pivot"])
    return builder.build()


def simulate(model, q, v, steps, dt, **options):
    errors = []
    for _ in range(steps):
        q, v = da.step(model, q, v, np.zeros(model.nv), dt, **options)
        errors.append(np.abs(da.constraints.constraint_error(model, q)).max())
    return q, v, np.array(errors)


def test_a_closure_function_gives_the_motion_of_the_loop_equations():
    """RBDA-8.11-GAMMA: integrating y alone leaves no loop error, and the trajectory is the same."""
    implicit, explicit = slider_crank(explicit=False), slider_crank(explicit=True)
    q = da.constraints.close_loops(implicit, [0.4, -0.55, 0.0], hold=["crank_pivot"])
    lean = math.asin(CRANK / ROD * math.sin(0.4))
    np.testing.assert_allclose(
        q, [0.4, -0.4 - lean, CRANK * math.cos(0.4) + ROD * math.cos(lean) - CRANK - ROD]
    )
    rate = -CRANK / ROD * math.cos(0.4) / math.cos(lean)
    v = np.array([3.0, 3.0 * (rate - 1.0), 0.0])
    v = (
        v
        - np.linalg.pinv(da.constraints.constraint_jacobian(implicit, q))
        @ da.constraints.constraint_jacobian(implicit, q)
        @ v
    )
    v = v * 3.0 / v[0]
    a = simulate(implicit, q, v, 500, 0.002, integrator="rk4", stabilization=None)
    b = simulate(explicit, q, v, 500, 0.002, integrator="rk4")
    assert abs(b[0][0] - q[0]) > 1.0
    np.testing.assert_allclose(b[0], a[0], atol=1e-8)
    np.testing.assert_allclose(b[1], a[1], atol=1e-7)
    assert b[2].max() < 1e-14 < a[2].max()


def test_loops_drift_without_stabilisation_and_not_with_it():
    """RBDA-8.3-BAUMGARTE: the error grows without it; with it, it stays, and T_stab matters little."""
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, np.zeros(3), [4.0, 0.0, 0.0], hold=["crank_pivot"])
    drift = simulate(model, q, v, 4000, 0.002, stabilization=None)[2]
    assert drift[-500:].max() > 3.0 * drift[:500].max()
    kept = [simulate(model, q, v, 4000, 0.002, stabilization=T)[2] for T in (0.05, 0.1)]
    for errors in kept:
        assert errors[-500:].max() < 1.5 * errors[:1000].max()
        assert errors[-500:].max() < 0.2 * drift[-500:].max()
    assert 0.1 < kept[0][-500:].max() / kept[1][-500:].max() < 1.0
    with pytest.raises(da.errors.DalembertError):
        da.step(model, q, v, np.zeros(3), 0.002, stabilization=0.0)
