"""Rollouts on a GPU: one launch, the motion that the CPU computes. Tensors of the host,
arrays of XLA's CPU and a stand-in for CuPy's stand for them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.cuda.fake_libcuda import FakeCuda, HostMemoryArray
from tests.cuda.moving_states import states

import dalembert as da
from dalembert.errors import ArgumentError, DeviceError, DtypeError, ShapeError

Put = Callable[[np.ndarray], Any]


@pytest.fixture(params=["torch", "jax", "cupy"])
def gpu(request: pytest.FixtureRequest) -> FakeCuda:
    """A GPU for the arrays of one library after the other."""
    return request.getfixturevalue(f"{request.param}_gpu")


@pytest.fixture
def put(gpu: FakeCuda, request: pytest.FixtureRequest) -> Put:
    """NumPy arrays as arrays of that library."""
    library = pytest.importorskip(request.node.callspec.params["gpu"])
    if library.__name__ == "jax":
        return library.numpy.asarray
    return library.tensor if library.__name__ == "torch" else library.asarray


def start(model: Any, samples: int, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    q, v, _ = states(model, samples, dtype)
    return q, v * v.dtype.type(0.1)


def same(found: Any, wanted: Any, tolerance: float = 1e-10) -> None:
    there = found.numpy()
    for name in ("time", "q", "v", "tau", "failed_at"):
        np.testing.assert_allclose(
            getattr(there, name), getattr(wanted, name), rtol=tolerance, atol=tolerance, err_msg=name
        )
    assert (there.cause == wanted.cause).all()
    for name in wanted.observed:
        np.testing.assert_allclose(there.observed[name], wanted.observed[name], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("every", [1, 5])
def test_forces_step_by_step(gpu: FakeCuda, put: Put, every: int) -> None:
    model = da.models.arm6()
    q, v = start(model, 9)
    tau = np.random.default_rng(4).standard_normal((9, 20, 6))
    launched = len(gpu.launches)
    found = da.rollout(model, *map(put, (q, v, tau)), dt=0.001, every=every)
    assert len(gpu.launches) == launched + 1
    assert type(found.q) is type(put(q))
    assert found.on_gpu
    assert found.q.shape == (9, 20 // every + 1, 6)
    same(found, da.rollout(model, q, v, tau, dt=0.001, every=every))


def test_one_sample_gets_no_axis_of_samples(gpu: FakeCuda, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of the host beside it, a time step, have no axis either."""
    if "torch" in sys.modules:
        monkeypatch.setattr(sys.modules["torch"].Tensor, "is_cuda", True, raising=False)
    model = da.models.arm6()
    q, v = (x[0] for x in start(model, 1))
    found = da.rollout(model, put(q), put(v), steps=4, dt=0.001)
    wanted = da.rollout(model, q, v, steps=4, dt=0.001)
    assert found.q.shape == wanted.q.shape == (5, 6)
    assert found.failed_at.shape == wanted.failed_at.shape == ()
    same(found, wanted)
    for _ in range(2):
        there = da.step(model, put(q), put(v), put(np.zeros(6)), 0.001)
        assert [tuple(x.shape) for x in there] == [(6,), (6,)]


def test_held_forces_policies_and_numbers_of_the_host(gpu: FakeCuda, put: Put) -> None:
    model = da.models.arm6()
    q, v = start(model, 5)
    held = np.random.default_rng(4).standard_normal((5, 1, 6))

    def policy(model: Any, t: Any, q: Any, v: Any) -> Any:
        return [-0.02 * x - t for x in v]

    cases: list[tuple[Any, Any]] = [
        (None, None),
        (held[0, 0], held[0, 0]),
        (put(held), held),
        (policy, policy),
    ]
    for there, here in cases:
        found = da.rollout(model, put(q), put(v), there, steps=10, dt=0.001)
        same(found, da.rollout(model, q, v, here, steps=10, dt=0.001))
    found = da.rollout(model, q[0], v[0], put(held), steps=4, dt=0.001)
    same(found, da.rollout(model, q[0], v[0], held, steps=4, dt=0.001))


@pytest.mark.parametrize("steps", [5, 8])
def test_servos_without_a_reference_hold_the_initial_poses(gpu: FakeCuda, put: Put, steps: int) -> None:
    """Of every sample its own, also where there are as many samples as steps."""
    model = da.models.arm6()
    q, v = start(model, 5)
    servo = da.control.Servo(kp=50.0, kd=5.0)
    found = da.rollout(model, put(q), put(v), servo, steps=steps, dt=0.001)
    same(found, da.rollout(model, q, v, servo, steps=steps, dt=0.001))
    moving = da.control.Servo(kp=50.0, kd=5.0, v_ref=put(v[:, None]))
    found = da.rollout(model, put(q), put(v), moving, steps=steps, dt=0.001)
    same(
        found,
        da.rollout(model, q, v, da.control.Servo(kp=50.0, kd=5.0, v_ref=v[:, None]), steps=steps, dt=0.001),
    )


def test_time_steps_and_parameters_of_samples(gpu: FakeCuda, put: Put) -> None:
    """Domain randomisation: each sample has masses of its own."""
    model = da.models.cart_pole()
    name = f"{model.bodies[1].name}.mass"
    q, v = start(model, 7)
    mass, dt = np.linspace(0.5, 2.0, 7), np.linspace(0.001, 0.002, 7)
    there = {"parameters": {name: put(mass)}, "dt": put(dt)}
    found = da.rollout(model, put(q), put(v), steps=15, **there)
    same(found, da.rollout(model, q, v, steps=15, parameters={name: mass}, dt=dt))
    assert np.ptp(found.numpy().q[:, -1, 0]) > 0.0


def test_samples_begin_anew_where_the_mask_says_so(gpu: FakeCuda, put: Put) -> None:
    """After a reset a sample moves as it did from the start; others go on."""
    model = da.models.arm6()
    q, v = start(model, 4)
    mask = np.zeros((4, 12))
    mask[1, 5] = mask[2, 0] = mask[2, 7] = 1.0
    found = da.rollout(model, put(q), put(v), steps=12, dt=0.001, reset=put(mask) > 0)
    wanted = da.rollout(model, q, v, steps=12, dt=0.001, reset=mask)
    same(found, wanted)
    plain = da.rollout(model, q, v, steps=12, dt=0.001)
    np.testing.assert_array_equal(wanted.q[[0, 3]], plain.q[[0, 3]])
    np.testing.assert_array_equal(wanted.q[1, 6:], plain.q[1, 1:8])
    np.testing.assert_array_equal(wanted.q[2, 8:], plain.q[2, 1:6])


def test_a_reset_heals_a_failed_sample() -> None:
    model = da.models.arm6()
    q, v = start(model, 2)
    tau = np.zeros((2, 8, 6))
    tau[1, 2] = np.nan
    mask = np.zeros((2, 8))
    mask[1, 4] = 1.0
    with pytest.warns(da.simulation.SimulationWarning, match="1 of 2 samples failed"):
        failed = da.rollout(model, q, v, tau, dt=0.001)
    assert failed.failed_at.tolist() == [-1, 2]
    healed = da.rollout(model, q, v, tau, dt=0.001, reset=mask)
    assert healed.failed_at.tolist() == [-1, -1]
    plain = da.rollout(model, q, v, steps=8, dt=0.001)
    np.testing.assert_array_equal(healed.q[1, 5:], plain.q[1, 1:5])


def test_contact_servos_and_external_forces(gpu: FakeCuda, put: Put) -> None:
    builder = da.ModelBuilder(name="ball")
    builder.add_body(
        "ball",
        parent="world",
        joint=da.Free(),
        inertia=da.RigidInertia(1.0, (0, 0, 0), (0.01, 0.01, 0.01)),
        shapes=[da.shapes.Sphere(0.1)],
    )
    model = builder.build().with_ground()
    q = np.tile(model.neutral(), (3, 1))
    q[:, 2] = [0.1, 0.12, 0.2]
    v = np.zeros((3, 6))
    push = np.zeros((3, 1, len(model.bodies), 6))
    push[:, :, 0, 3] = [[0.0], [1.0], [2.0]]
    options = {
        "steps": 60,
        "dt": 0.005,
        "contact": "compliant",
        "observe": ("contact_forces", "contact_work"),
    }
    found = da.rollout(model, put(q), put(v), external_forces=put(push), **options)
    wanted = da.rollout(model, q, v, external_forces=push, **options)
    same(found, wanted, 1e-7)
    np.testing.assert_allclose(found.numpy().contacts.force, wanted.contacts.force, rtol=1e-6, atol=1e-6)


def test_actuators_pull_along_tendons(gpu: FakeCuda, put: Put) -> None:
    """With a tendon at its limit, in contact and without."""
    builder = da.ModelBuilder()
    inertia = da.RigidInertia(1.0, (0.1, 0.0, 0.0), (0.01, 0.01, 0.01))
    builder.add_body("ball", "world", da.Free(), inertia=inertia, shapes=[da.shapes.Sphere(0.1)])
    builder.add_body("arm", "ball", da.Revolute((0, 1, 0)), inertia=inertia)
    builder.add_spring("rope", [("world", (0, 0, 1)), ("arm", (0.1, 0, 0))], stiffness=2.0, limits=(0, 0.9))
    builder.add_actuator("winch", {"rope": -1.0, "arm": 0.5}, gain=3.0, bias=(0.0, -1.0, -0.1))
    model = builder.build().with_ground()
    q = np.tile(model.neutral(), (3, 1))
    q[:, 2] = [0.1, 0.11, 0.2]
    v = np.random.default_rng(0).normal(size=(3, model.nv))
    ctrl = np.random.default_rng(1).normal(size=(3, 10, 1))
    for contact in ("rigid", None):
        found = da.rollout(model, put(q), put(v), da.control.Actuators(put(ctrl)), contact=contact)
        same(found, da.rollout(model, q, v, da.control.Actuators(ctrl), contact=contact), 1e-7)


def test_single_precision_follows_the_arrays(gpu: FakeCuda, put: Put) -> None:
    model = da.models.arm6()
    q, v = start(model, 3, "float32")
    found = da.rollout(model, put(q), put(v), steps=10, dt=0.001)
    assert str(found.q.dtype).endswith("float32")
    wanted = da.rollout(model, q.astype(float), v.astype(float), steps=10, dt=0.001)
    np.testing.assert_allclose(found.numpy().q, wanted.q, rtol=1e-4, atol=1e-4)


def test_failed_samples_are_found_in_the_trajectory(gpu: FakeCuda, put: Put) -> None:
    model = da.models.arm6()
    q, v = start(model, 3)
    tau = np.zeros((3, 6, 6))
    tau[1, 3] = np.nan
    found = da.rollout(model, *map(put, (q, v, tau)), dt=0.001)
    assert found.failed.tolist() == [False, True, False]
    there = found.numpy()
    assert there.failed_at.tolist() == [-1, 3, -1]
    assert there.cause[1] == "controls are not finite"
    assert found[1].q.shape == (7, 6)
    assert "on a GPU" in repr(found)


def test_what_would_wait_for_the_host_is_refused(gpu: FakeCuda, put: Put) -> None:
    model = da.models.arm6()
    q, v = map(put, start(model, 3))
    with pytest.raises(ArgumentError, match="a callback is called on the host"):
        da.rollout(model, q, v, steps=3, callback=lambda t, q, v: v)
    with pytest.raises(ArgumentError, match='"energy" is not observed on a GPU'):
        da.rollout(model, q, v, steps=3, observe="energy")
    with pytest.raises(ShapeError, match="expected"):
        da.rollout(model, q, v, put(np.zeros((3, 4, 6))), steps=3)


def test_arrays_of_two_libraries_or_places_are_refused(torch_gpu: FakeCuda, cupy_gpu: FakeCuda) -> None:
    torch, cupy = pytest.importorskip("torch"), sys.modules["cupy"]
    model = da.models.arm6()
    q, v = start(model, 3)
    with pytest.raises(DtypeError, match=r"v is a CuPy array beside PyTorch .* pass torch\.from_dlpack\(v\)"):
        da.rollout(model, torch.tensor(q), cupy.ndarray(v), steps=3)
    with pytest.raises(DtypeError, match=r"v is a PyTorch tensor beside CuPy .* pass cupy\.asarray\(v\)"):
        da.rollout(model, cupy.ndarray(q), torch.tensor(v), steps=3)
    with pytest.raises(DeviceError, match=r'dt is on the CPU, but .* GPU 0; .* dt\.to\("cuda:0"\)'):
        da.rollout(model, torch.tensor(q), torch.tensor(v), steps=3, dt=torch.tensor(0.01))


def test_gradients_of_tensors_do_not_pass(torch_gpu: FakeCuda) -> None:
    torch = pytest.importorskip("torch")
    model = da.models.arm6()
    q, v = map(torch.tensor, start(model, 3))
    with pytest.raises(ArgumentError, match="v requires gradients, which do not pass through a rollout"):
        da.rollout(model, q, v.clone().requires_grad_(), steps=3)
    with torch.no_grad():
        assert da.rollout(model, q, v.clone().requires_grad_(), steps=3, dt=1e-4).q.shape == (3, 4, 6)


def test_arrays_of_other_libraries_are_pointed_to_pytorch(cuda: FakeCuda) -> None:
    model = da.models.arm6()
    with pytest.raises(DeviceError, match="take PyTorch tensors, CuPy arrays or JAX arrays"):
        da.rollout(model, *map(HostMemoryArray, start(model, 3)), steps=3)
