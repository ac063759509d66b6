"""A rollout is the steps one by one, bit for bit: one sample and batches, streams, decimation, in pieces."""

import signal
import threading
import time

import numpy as np
import pytest

import dalembert as da
from dalembert import algorithms, codegen, scalar
from dalembert.algorithms.declaration import Precondition
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.library import library_recipe
from dalembert.compiler.lowering import Recipe
from dalembert.compiler.rollout_execution import compile_rollout
from dalembert.errors import ArgumentError, DtypeError, ShapeError, StateError, UnknownNameError

DT = 0.001
SEMI_IMPLICIT = (("integrator", "semi_implicit"),)
STABILIZED = (*SEMI_IMPLICIT, ("stabilization", "automatic"))

MODELS = {
    "arm": (da.models.arm6, SEMI_IMPLICIT),
    "humanoid": (da.models.humanoid, SEMI_IMPLICIT),
    "four-bar": (da.models.four_bar, STABILIZED),
}


def stepping(model, options=SEMI_IMPLICIT, dtype="float64"):
    recipe = library_recipe(model, "step", options=options)
    return compile_rollout(recipe, carried={"q": 0, "v": 1}, streams=("tau",), dtype=dtype)


def start_of(model, batch, steps, dtype="float64"):
    rng = np.random.default_rng(3)
    q = np.stack([model.random_state(k)[0] for k in range(int(np.prod(batch)))]).reshape(*batch, model.nq)
    v = rng.normal(size=(*batch, model.nv))
    tau = rng.normal(size=(*batch, steps, model.nv))
    return [np.ascontiguousarray(x, dtype) for x in (q, v, tau)]


def one_by_one(model, q, v, tau, dt=DT):
    """Arrays (…, steps, n) of q and v, by `da.step`."""
    found = []
    for step in range(tau.shape[-2]):
        q, v = da.step(model, q, v, np.ascontiguousarray(tau[..., step, :]), dt)
        found.append((q, v))
    return [np.stack(x, axis=-2) for x in zip(*found, strict=True)]


def same_bits(found, expected):
    return found.shape == expected.shape and found.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_a_rollout_is_the_steps_one_by_one(name, dtype):
    """ANIM-SIMLOOP"""
    make, options = MODELS[name]
    model, steps = make(), 12
    rollout = stepping(model, options, dtype)
    for batch in ((), (11,), (2, 3)):
        q, v, tau = start_of(model, batch, steps, dtype)
        expected = one_by_one(model, q, v, tau)
        for every in (1, 5, 12, 13):
            run = rollout(q, v, tau, DT, steps=steps, every=every, check="off")
            for found, wanted in zip(run.outputs, expected, strict=True):
                assert same_bits(found, wanted[..., every - 1 :: every, :])
            assert same_bits(run.state["q"], expected[0][..., -1, :])
            assert same_bits(run.state["v"], expected[1][..., -1, :])
            assert run.done == steps
            assert np.all(run.refused_at == -1)


def test_arguments_without_batch_axes_are_those_of_every_sample():
    model, steps = da.models.arm6(), 9
    rollout = stepping(model)
    q, v, tau = start_of(model, (10,), steps)
    dt = np.linspace(0.001, 0.01, 10)
    run = rollout(q, v[3], tau[2], dt, steps=steps)
    wide = np.broadcast_to(v[3], (10, 6)).copy(), np.broadcast_to(tau[2], tau.shape).copy()
    for found, wanted in zip(run.outputs, one_by_one(model, q, *wide, dt), strict=True):
        assert same_bits(found, wanted)
    many = rollout(q[1], v[1], tau, DT, steps=steps)
    for row in (0, 7):
        alone = rollout(q[1], v[1], tau[row], DT, steps=steps)
        assert same_bits(many.outputs[0][row], alone.outputs[0])
    named = rollout(q, tau=tau[:, ::-1][:, ::-1], v=v.tolist(), dt=[DT], steps=steps)
    assert same_bits(named.outputs[1], rollout(q, v, tau, DT, steps=steps).outputs[1])


def test_columns_of_a_wider_array_are_read_in_place():
    """The oracle is steps one by one, of contiguous copies."""
    model, steps = da.models.arm6(), 5
    recipe = library_recipe(model, "step", options=SEMI_IMPLICIT)
    held = compile_rollout(recipe, carried={"q": 0, "v": 1})
    q, v, _ = start_of(model, (7,), steps)
    wide = np.random.default_rng(5).normal(size=(3, 7, 11))
    wide[0, :, 2:8], wide[1, :, 2:8] = q, v
    q, v, constant = wide[..., 2:8]
    copies = [np.ascontiguousarray(x) for x in (q, v)]
    same = np.repeat(constant[:, np.newaxis], steps, axis=1)
    run = held(q, v, constant, DT, steps=steps)
    for found, wanted in zip(run.outputs, one_by_one(model, *copies, same), strict=True):
        assert same_bits(found, wanted)


@pytest.mark.parametrize("batch", [(), (9,)])
def test_pieces_are_one_call(batch):
    model, steps = da.models.humanoid(), 20
    rollout = stepping(model)
    q, v, tau = start_of(model, batch, steps)
    whole = rollout(q, v, tau, DT, steps=steps, every=3)
    run = rollout.start(q, v, tau, DT, steps=steps, every=3)
    seen = []
    for piece in (1, 0, 4, 7, 100):
        run.advance(piece)
        seen.append(run.done)
    assert seen == [1, 1, 5, 12, 20]
    for found, wanted in zip((*run.outputs, *run.state.values()), (*whole.outputs, *whole.state.values())):
        assert same_bits(found, wanted)


def test_long_rollouts_can_be_watched_and_interrupted(monkeypatch):
    monkeypatch.setattr("dalembert.compiler.rollout_execution.FIRST_STEPS_WORK", 1)
    monkeypatch.setattr("dalembert.compiler.rollout_execution.SECONDS_UNTIL_INTERRUPT", 0.0)
    model, steps = da.models.arm6(), 6
    rollout = stepping(model)
    q, v, tau = start_of(model, (9,), steps)
    seen = []
    run = rollout(q, v, tau, DT, steps=steps, progress=seen.append)
    assert seen == [1, 2, 3, 4, 5, 6]
    for found, wanted in zip(run.outputs, one_by_one(model, q, v, tau), strict=True):
        assert same_bits(found, wanted)

    def interrupt(done):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rollout(q, v, tau, DT, steps=steps, progress=interrupt)


def test_ctrl_c_ends_a_rollout_that_would_take_hours():
    model = da.models.arm6()
    recipe = library_recipe(model, "step", options=SEMI_IMPLICIT)
    rollout = compile_rollout(recipe, carried={"q": 0, "v": 1})
    given = (np.zeros(6), np.zeros(6), np.zeros(6), DT)
    rollout(*given, steps=1)
    # Where the tests run as a background job, SIGINT is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            rollout(*given, steps=10**11, every=10**11)
        assert time.monotonic() - begun < 5.0
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_rollout_comes_from_the_disk_without_a_trace(monkeypatch, tmp_path):
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(tmp_path))
    model = da.models.arm6()
    given = start_of(model, (3,), 4)
    first = stepping(model)(*given, DT, steps=4)
    monkeypatch.setattr("dalembert.compiler.kernels.lower", None)
    for found, wanted in zip(stepping(model)(*given, DT, steps=4).outputs, first.outputs, strict=True):
        assert same_bits(found, wanted)


def test_no_steps_and_no_samples():
    model = da.models.arm6()
    rollout = stepping(model)
    q, v, tau = start_of(model, (5,), 0)
    run = rollout(q, v, tau, DT, steps=0)
    assert [x.shape for x in run.outputs] == [(5, 0, 6)] * 2
    assert np.array_equal(run.state["q"], q)
    assert run.state["q"] is not q
    run = rollout(np.zeros((0, 6)), v[0], np.zeros((4, 6)), DT, steps=4)
    assert [x.shape for x in run.outputs] == [(0, 4, 6)] * 2
    assert run.done == 4


def test_initial_values_are_left_alone():
    model = da.models.arm6()
    q, v, tau = start_of(model, (5,), 3)
    before = q.copy()
    stepping(model)(q, v, tau, DT, steps=3)
    assert np.array_equal(q, before)


def growing(model, x, u, step, rate):
    """x' = x + u + rate, refused above ten."""
    return [a + b + rate for a, b in zip(x, u, strict=True)], step + 1.0, x


def grown(**options):
    measures = {
        "x reaches {measure:.3g}": lambda model, x, u, step, rate: scalar.maximum(x[0], x[1]),
        "u reaches {measure:.3g}": lambda model, x, u, step, rate: u[1],
    }
    limit = {"float64": 10.0, "float32": 10.0}
    refusals = tuple(Precondition(measure, limit, message) for message, measure in measures.items())
    recipe = Recipe(
        "growing",
        growing,
        da.models.pendulum(),
        (
            ArrayArgument("x", (2,)),
            ArrayArgument("u", (2,)),
            ArrayArgument("step", ()),
            ArrayArgument("rate", ()),
        ),
        refusals=refusals,
    )
    return compile_rollout(recipe, carried={"x": 0, "step": 1}, streams=("u",), **options)


def test_a_refused_sample_is_named_with_its_step():
    rollout, steps = grown(), 30
    x = np.zeros((4, 3, 2))
    x[2, 1] = 4.5
    x[3, 0] = -9.0
    u = np.full((steps, 2), 0.5)
    u[:, 1] = 0.0
    run = rollout(x, u, 0.0, 0.0, steps=steps, check="off")
    expected = np.full((4, 3), 21)
    expected[2, 1] = 12
    expected[3, 0] = -1
    assert np.array_equal(run.refused_at, expected)
    with pytest.raises(StateError, match=r"growing, sample \(2, 1\), step 12: x reaches 10.5"):
        rollout(x, u, 0.0, 0.0, steps=steps)
    for every in (1, 4):
        flagged = rollout(x, u, 0.0, 0.0, steps=steps, every=every, check="flag")
        plain = rollout(x, u, 0.0, 0.0, steps=steps, every=every, check="off")
        nan = np.isnan(flagged.outputs[0][2, 1]).any(axis=-1)
        assert np.array_equal(nan, np.arange(every - 1, steps, every) >= 12)
        assert np.isnan(flagged.state["x"][2, 1]).all()
        assert same_bits(flagged.outputs[0][3, 0], plain.outputs[0][3, 0])
    with pytest.raises(StateError, match=r"growing, step 2: x reaches 10.5"):
        rollout([9.5, 0.0], u, 0.0, 0.0, steps=steps)
    with pytest.raises(StateError, match=r"growing, step 0: x reaches 11"):
        rollout([11.0, 0.0], u[:1], 0.0, 0.0, steps=1)
    alone = rollout([9.5, 0.0], u, 0.0, 0.0, steps=steps, every=2, check="flag")
    assert np.isnan(alone.outputs[0]).all(axis=-1).tolist() == [False] + [True] * 14
    assert np.isnan(alone.state["step"])
    assert alone.refused_at == 2
    u[9, 1] = 70.0
    with pytest.raises(StateError, match=r"growing, sample \(0, 0\), step 9: u reaches 70"):
        rollout(x, u, 0.0, 0.0, steps=steps)


def test_a_sample_refused_in_a_later_piece_is_named_with_its_step(monkeypatch):
    monkeypatch.setattr("dalembert.compiler.rollout_execution.FIRST_STEPS_WORK", 1)
    monkeypatch.setattr("dalembert.compiler.rollout_execution.SECONDS_UNTIL_INTERRUPT", 0.0)
    rollout = grown()
    x, u = np.array([[0.0, 0.0], [3.0, 3.0]]), np.ones((20, 2))
    with pytest.raises(StateError, match=r"growing, sample \(1,\), step 8: x reaches 11"):
        rollout(x, u, 0.0, 0.0, steps=20)
    assert rollout(x, u, 0.0, 0.0, steps=20, check="off").refused_at.tolist() == [11, 8]


def test_quaternions_off_unit_norm_are_refused_at_the_start():
    model = da.models.humanoid()
    q, v, tau = start_of(model, (9,), 4)
    q[6, 3:7] *= 1.01
    with pytest.raises(
        StateError, match=r"q\[3:7\], sample \(6,\), step 0: a quaternion must have unit norm"
    ):
        stepping(model)(q, v, tau, DT, steps=4)


def test_scalars_are_carried_and_a_result_may_be_an_argument():
    run = grown()([0.0, 1.0], np.zeros((7, 2)), 3.0, 0.25, steps=7)
    assert run.outputs[1].tolist() == [4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    assert run.state["step"] == 10.0
    assert run.outputs[2][:, 0].tolist() == [0.25 * k for k in range(7)]


def test_a_function_of_the_users_own_with_run_time_parameters():
    model, steps = da.models.double_pendulum(), 8

    def step(model, q, v, dt):
        q, v = algorithms.step(model, q, v, [0.0] * model.nv, dt)
        return q, v, algorithms.kinetic_energy(model, q, v)

    name = "lower.mass"
    value = np.asarray(model.value(name))
    arguments = (ArrayArgument("q", (2,)), ArrayArgument("v", (2,)), ArrayArgument("dt", ()))
    recipe = Recipe("swing", step, model, arguments, (ArrayArgument(name, value.shape),))
    rollout = compile_rollout(recipe, carried={"q": 0, "v": 1})
    masses = np.array([1.0, 2.0, 5.0])
    run = rollout([0.3, 0.1], [0.0, 1.0], DT, steps=steps, parameters={name: masses})
    for row, mass in enumerate(masses):
        other = model.with_values({name: float(mass)})
        q, v = np.array([0.3, 0.1]), np.array([0.0, 1.0])
        for _ in range(steps):
            q, v = da.step(other, q, v, np.zeros(2), DT)
        np.testing.assert_allclose(run.outputs[0][row, -1], q, rtol=1e-12)
        np.testing.assert_allclose(
            run.outputs[2][row, -1], da.dynamics.kinetic_energy(other, q, v), rtol=1e-11
        )


def implicit(model, x, u):
    """The implicit step x' = x + u - 0.1 x'^3 by Newton's method: samples need different numbers of them."""

    def better(y):
        return y - (y + 0.1 * y * y * y - x - u) / (1.0 + 0.3 * y * y)

    def solved(y):
        return scalar.absolute(y + 0.1 * y * y * y - x - u) < 1e-12

    y = scalar.loop(40, better, x, until=solved)

    def grown(z):
        return scalar.loop(5, lambda w: 1.5 * w + y, z, until=lambda w: w > 3.0 * y)

    return y, scalar.loop(3, lambda z: 0.5 * grown(z), y)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_step_may_hold_loops_of_its_own(dtype):
    model, steps = da.models.pendulum(), 15
    arguments = (ArrayArgument("x", ()), ArrayArgument("u", ()))
    rollout = compile_rollout(
        Recipe("implicit", implicit, model, arguments), carried={"x": 0}, streams=("u",), dtype=dtype
    )
    step = da.compile(implicit, model, inputs={"x": (), "u": ()}, dtype=dtype)
    rng = np.random.default_rng(0)
    for batch in ((), (37,)):
        x = (10.0 ** rng.uniform(-3, 4, batch)).astype(dtype)
        u = rng.normal(size=(*batch, steps)).astype(dtype)
        run = rollout(x, u, steps=steps)
        for k in range(steps):
            x, z = step(x, np.ascontiguousarray(u[..., k]))
            assert same_bits(np.ascontiguousarray(run.outputs[0][..., k]), np.asarray(x))
            assert same_bits(np.ascontiguousarray(run.outputs[1][..., k]), np.asarray(z))


def test_threads_share_the_samples(monkeypatch):
    monkeypatch.setattr(codegen.cpu.threads, "WORTH_A_THREAD", 1)
    model, steps = da.models.arm6(), 5
    rollout = stepping(model)
    q, v, tau = start_of(model, (100,), steps)
    before = codegen.get_num_threads()
    try:
        found = []
        for count in (1, 2):
            codegen.set_num_threads(count)
            found.append(rollout(q, v, tau, DT, steps=steps).outputs)
    finally:
        codegen.set_num_threads(before)
    assert all(same_bits(one, two) for one, two in zip(*found, strict=True))


def test_wrong_arguments_are_named():
    model = da.models.arm6()
    rollout = stepping(model)
    q, v, tau = start_of(model, (), 4)
    with pytest.raises(ShapeError, match=r"tau: expected \(5, 6\), got \(4, 6\)"):
        rollout(q, v, tau, DT, steps=5)
    with pytest.raises(DtypeError, match="q is float32"):
        rollout(q.astype(np.float32), v, tau, DT, steps=4)
    for wrong in (-1, 1.5, "3", True):
        with pytest.raises(ArgumentError, match="steps"):
            rollout(q, v, tau, DT, steps=wrong)
    with pytest.raises(ArgumentError, match="every is 0"):
        rollout(q, v, tau, DT, steps=4, every=0)
    with pytest.raises(UnknownNameError, match="check"):
        rollout(q, v, tau, DT, steps=4, check="maybe")
    with pytest.raises(ArgumentError, match="needs dt"):
        rollout(q, v, tau, steps=4)
    with pytest.raises(UnknownNameError, match="tua"):
        compile_rollout(
            library_recipe(model, "step", options=SEMI_IMPLICIT), carried={"q": 0}, streams=("tua",)
        )
