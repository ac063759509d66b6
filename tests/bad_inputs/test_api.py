"""Bad input to the public functions: refused by an error of ours that says what, where and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import (
    ArgumentError,
    DalembertError,
    DtypeError,
    ModelError,
    ShapeError,
    StateError,
    UnknownNameError,
)

ARM = da.models.arm6()
Q, V = ARM.random_state(1)
TAU = np.ones(6)
Case = tuple[str, Callable[[], Any], type[DalembertError], str]


def fd(q: Any = Q, v: Any = V, tau: Any = TAU, *more: Any, **options: Any) -> Any:
    return da.forward_dynamics(ARM, q, v, tau, *more, **options)


def push(point: Any = (0, 0, 0), force: Any = (0, 0, 1), body: Any = "wrist", q: Any = Q) -> Any:
    return da.force_at_point(ARM, q, body, point, force)


def step(dt: Any, **options: Any) -> Any:
    return da.step(ARM, Q, V, TAU, dt, **options)


BAD: list[Case] = [
    # shapes
    ("q too short", lambda: fd(Q[:5]), ShapeError, r"q: expected \(6,\), got \(5,\)"),
    ("q too long", lambda: fd(np.zeros(7)), ShapeError, r"q: expected \(6,\), got \(7,\)"),
    ("tau too short", lambda: fd(tau=np.zeros(5)), ShapeError, r"tau: expected \(6,\), got \(5,\)"),
    ("rows too short", lambda: fd(np.zeros((3, 5))), ShapeError, r"q: expected \(.*6,?\).*got \(3, 5\)"),
    ("a number for q", lambda: fd(1.0), ShapeError, r"q: expected \(6,\), got \(\)"),
    ("columns for rows", lambda: fd(np.zeros((6, 3))), ShapeError, r"q: expected .*got \(6, 3\)"),
    ("empty list", lambda: fd([]), ShapeError, r"q: expected \(6,\), got \(0,\)"),
    ("ragged", lambda: fd([[0.0] * 6, [0.0] * 5]), ShapeError, "q: .*inhomogeneous"),
    (
        "no broadcast",
        lambda: fd(np.zeros((3, 6)), np.zeros((4, 6))),
        ShapeError,
        r"do not broadcast: q \(3, 6\), v \(4, 6\), tau \(6,\)",
    ),
    ("forces of five", lambda: fd(Q, V, TAU, np.zeros((5, 6))), ShapeError, r"external_forces: .*\(5, 6\)"),
    ("forces flat", lambda: fd(Q, V, TAU, np.zeros(36)), ShapeError, r"external_forces: .*\(36,\)"),
    ("time a vector", lambda: fd(time=np.zeros((2, 3)), q=np.zeros((4, 6))), ShapeError, "do not broadcast"),
    ("point of two", lambda: push(point=(0, 0)), ShapeError, r"point: expected \(3,\), got \(2,\)"),
    ("force of four", lambda: push(force=np.zeros(4)), ShapeError, r"force: expected \(3,\), got \(4,\)"),
    # element types
    ("complex", lambda: fd(Q.astype(complex)), DtypeError, "q .*complex128; expected real numbers"),
    ("text", lambda: fd(["a"] * 6), DtypeError, "q .*expected real numbers"),
    ("objects", lambda: fd(np.array([object()] * 6)), DtypeError, "q .*object; expected real numbers"),
    ("dates", lambda: fd(np.zeros(6, "M8[s]")), DtypeError, "q .*expected real numbers"),
    ("half precision", lambda: fd(Q.astype(np.float16)), DtypeError, r"q is float16.*\.astype"),
    ("mixed", lambda: fd(Q.astype(np.float32)), DtypeError, "mix float types: q is float32, v is float64"),
    ("complex point", lambda: push(point=(1j, 0, 0)), DtypeError, "point .*expected real numbers"),
    ("missing", lambda: fd(None), ArgumentError, "q is missing"),
    # numbers
    *((f"dt {dt}", lambda dt=dt: step(dt), ArgumentError, f"dt must be positive and finite, got {dt}")
      for dt in (0.0, -0.1, np.nan, np.inf)),
    ("dt of a batch", lambda: step(np.array([0.1, -0.1])), ArgumentError, "dt must be positive and finite"),
    ("dt text", lambda: step("fast"), DalembertError, "dt .*fast|dt .*real numbers"),
    ("dt missing", lambda: step(None), DalembertError, "dt "),
    # names
    ("frame", lambda: da.jacobian(ARM, Q, "tol"), UnknownNameError, 'unknown frame "tol".*nearest: "tool"'),
    ("frame number", lambda: da.jacobian(ARM, Q, 3), UnknownNameError, "a name is a string, but 3"),
    ("pose", lambda: da.forward_kinematics(ARM, Q)["rol"], UnknownNameError, '"rol".*nearest: "roll"'),
    ("pose number", lambda: da.forward_kinematics(ARM, Q)[0], UnknownNameError, "a name is a string, but 0"),
    ("body of a force", lambda: push(body="rist"), UnknownNameError, 'unknown body "rist".*nearest: "wrist"'),
    ("method", lambda: fd(method="abba"), UnknownNameError, 'forward_dynamics "abba"; valid: "aba"'),
    ("integrator", lambda: step(0.1, integrator="eule"), UnknownNameError, '"eule"; valid: "semi'),
    ("check", lambda: fd(check="maybe"), UnknownNameError, 'unknown check "maybe"; valid: "raise"'),
    ("body", lambda: ARM.body("rist"), UnknownNameError, 'unknown body "rist".*nearest: "wrist"'),
    ("joint", lambda: ARM.joint("elbo"), UnknownNameError, 'unknown joint "elbo".*nearest: "elbow"'),
    ("body out of range", lambda: ARM.bodies[17], DalembertError, "no body 17; .*0 to 5"),
    ("subtree out of range", lambda: ARM.subtree(17), ArgumentError, "no body 17; bodies are 0 to 5"),
    # models
    ("no model", lambda: da.mass_matrix(None, Q), DtypeError, "mass_matrix must be a Model, got NoneType"),
    ("text for a model", lambda: da.jacobian("arm", Q, "tool"), DalembertError, "must be a Model, got str"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "kind", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_input_is_refused_with_fact_and_place(
    call: Callable[[], Any], kind: type[DalembertError], message: str
):
    with pytest.raises(kind, match=message):
        call()


def test_errors_are_also_the_standard_ones():
    """Code that catches ValueError, TypeError or KeyError goes on working."""
    assert issubclass(ShapeError, ValueError)
    assert issubclass(DtypeError, TypeError)
    assert issubclass(UnknownNameError, KeyError)
    assert issubclass(StateError, ValueError)
    with pytest.raises(ValueError, match="expected"):
        fd(Q[:5])


def test_refusal_leaves_a_function_usable():
    """An error on the way into machine code is no different: the next call gives what it gave before."""
    expected = fd()
    for call, kind in ((lambda: fd(Q[:5]), ShapeError), (lambda: fd(None), ArgumentError)):
        with pytest.raises(kind):
            call()
        np.testing.assert_array_equal(fd(), expected)


def massless_leaf() -> da.Model:
    builder = da.ModelBuilder()
    inertia = da.RigidInertia(1.0, (0, 0, 0.1), ((0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)))
    builder.add_body("arm", "world", da.Revolute((0, 0, 1)), inertia=inertia)
    builder.add_body("hand", "arm", da.Revolute((0, 1, 0)), "wrist")
    return builder.build()


def test_massless_leaf_is_refused_by_forward_dynamics():
    """Its acceleration is undefined: the error names the joint; what is defined still works."""
    model = massless_leaf()
    q = v = np.zeros(2)
    assert np.all(np.isfinite(da.inverse_dynamics(model, q, v, np.ones(2))))
    for call in (
        lambda: da.forward_dynamics(model, q, v, v),
        lambda: da.inverse_mass_matrix(model, q),
        lambda: da.step(model, q, v, v, 0.1),
    ):
        with pytest.raises(ModelError, match=r"wrist"):
            call()


def test_loops_are_not_silently_left_open():
    """The dynamics of a tree are no answer for a model whose loop joints they leave out."""
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, model.neutral(), np.ones(3))
    free = da.forward_dynamics(model.tree(), q, v, v)
    K, k = da.constraints.constraint_jacobian(model, q), da.constraints.constraint_bias(model, q, v)
    np.testing.assert_allclose(K @ da.forward_dynamics(model, q, v, v), k, atol=1e-9)
    assert np.abs(K @ free - k).max() > 1.0
    with pytest.raises(StateError, match="breaks the constraints"):
        da.inverse_dynamics(model, q, v, free)
    for function, method in ((da.forward_dynamics, "aba"), (da.inverse_dynamics, "rnea")):
        with pytest.raises(ModelError, match=r"is for trees.*model\.tree\(\)"):
            function(model, q, v, v, method=method)
    assert da.mass_matrix(model, q).shape == (model.nv, model.nv)  # the spanning tree's, by definition
