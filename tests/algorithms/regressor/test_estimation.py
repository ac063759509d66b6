"""Inertial parameters from torques with noise: every one to 1 %, and how well each is known."""

import functools

import numpy as np
import pytest
from tests.conformance import models

import dalembert as da
from dalembert.api import estimation
from dalembert.errors import ArgumentError, DalembertError, ModelError, ShapeError

EQUIPMENT = {
    "turret": (2.0, (-0.15, 0.10, -0.10)),
    "upper_arm": (5.0, (0.15, -0.20, 0.20)),
    "forearm": (3.0, (0.08, 0.10, 0.15)),
    "roll": (1.0, (0.08, 0.10, -0.12)),
    "wrist": (1.0, (0.10, -0.08, 0.12)),
    "flange": (1.0, (0.06, 0.10, 0.12)),
}
"""Mass [kg] and place [m] of what is fixed to each link: with it no base parameter is zero by symmetry."""
SECONDS = 60.0
NOISE = 0.01
SEEDS = range(5)


def equipped_arm():
    model = da.models.arm6()
    tens = da.identification.inertial_parameters(model).reshape(-1, 10)
    for body, own in zip(model.bodies, tens, strict=True):
        mass, place = EQUIPMENT[body.name]
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = mass * (
            np.dot(place, place) * np.eye(3) - np.outer(place, place)
        )
        own += [mass, *np.multiply(mass, place), xx, yy, zz, xy, xz, yz]
    return da.identification.with_inertial_parameters(model, tens.ravel())


@functools.cache
def excitation():
    return da.identification.exciting_motion(da.models.arm6())


@functools.cache
def experiment(name):
    """What is known of the robot, its motion of a minute, exact torques, and its true base parameters."""
    drawing = da.models.arm6()
    robot = {"arm6": da.models.arm6, "equipped": equipped_arm}[name]()
    motion = excitation().at(np.arange(0.0, SECONDS, 1e-3))
    true = da.identification.base_parameters(drawing).of(da.identification.inertial_parameters(robot))
    return drawing, motion, da.inverse_dynamics(robot, *motion), true


def noisy(tau, seed):
    """Torques with noise of 1 % of each joint's root mean square."""
    sizes = NOISE * np.sqrt((tau**2).mean(axis=0))
    return tau + sizes * np.random.default_rng(seed).standard_normal(tau.shape)


@functools.cache
def found(name, seed):
    drawing, motion, tau, _ = experiment(name)
    return da.identification.identify(drawing, *motion, noisy(tau, seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_base_parameter_is_found_to_one_percent_of_itself(seed):
    """RBDA-9.7-SIMPLIFY: all 36 of an arm on which none is zero, from torques with 1 % of noise."""
    true = experiment("equipped")[3]
    assert np.abs(true).min() > 1e-3
    result = found("equipped", seed)
    np.testing.assert_allclose(result.values, true, rtol=0.01)
    assert (result.standard_deviations < 0.0025 * np.abs(true)).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_parameters_of_symmetric_links_are_found_to_one_percent_or_to_be_zero(seed):
    """RBDA-9.7-SIMPLIFY: 16 to 1 % of themselves; 20 are zero by symmetry and are found zero within sigma."""
    true = experiment("arm6")[3]
    zero = np.abs(true) < 1e-12
    assert zero.sum() == 20
    result = found("arm6", seed)
    np.testing.assert_allclose(result.values[~zero], true[~zero], rtol=0.01)
    assert (np.abs(result.values[zero]) < 4.0 * result.standard_deviations[zero]).all()
    assert (result.standard_deviations[zero] < 1e-4 * np.abs(true).max()).all()


@pytest.mark.parametrize("name", ["arm6", "equipped"])
def test_errors_are_as_large_as_the_standard_deviations_say(name):
    """RBDA-9.7-SIMPLIFY: over all parameters and seeds, errors / sigma are normal numbers."""
    true = experiment(name)[3]
    results = [found(name, seed) for seed in SEEDS]
    scores = np.array([(r.values - true) / r.standard_deviations for r in results])
    assert 0.85 < np.sqrt((scores**2).mean()) < 1.15
    assert np.abs(scores).max() < 4.0
    assert (np.abs(scores) > 3.0).mean() < 0.02


def test_the_noise_of_each_joint_is_found_with_the_parameters():
    tau = experiment("equipped")[2]
    sizes = NOISE * np.sqrt((tau**2).mean(axis=0))
    assert sizes.max() > 50.0 * sizes.min()
    np.testing.assert_allclose(found("equipped", 0).noise, sizes, rtol=0.02)


def test_what_was_found_foretells_other_motions():
    model = da.models.arm6()
    other = da.identification.exciting_motion(model, period=7.0, trials=1, seed=5).at(
        np.arange(0.0, 7.0, 0.01)
    )
    expected = da.inverse_dynamics(equipped_arm(), *other)
    Y = da.identification.base_parameters(model).reduced(
        da.identification.inverse_dynamics_regressor(model, *other)
    )
    error = np.linalg.norm(Y @ found("equipped", 0).values - expected, axis=0)
    assert (error < 0.002 * np.linalg.norm(expected, axis=0)).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_masses_are_found_where_shapes_are_known(seed):
    """RBDA-2.13-INERTIA: with known centres and radii of gyration pi is linear in the masses."""
    model, motion, tau, _ = experiment("arm6")
    tens = da.identification.inertial_parameters(model).reshape(-1, 10)
    shapes = np.zeros((60, 6))
    for k, own in enumerate(tens):
        shapes[10 * k : 10 * k + 10, k] = own / own[0]
    result = da.identification.identify(model, *motion, noisy(tau, seed), unknowns=shapes)
    np.testing.assert_allclose(result.values, tens[:, 0], rtol=0.01)
    assert (np.abs(result.values - tens[:, 0]) < 4.0 * result.standard_deviations).all()


def test_values_and_covariance_are_those_of_weighted_least_squares(monkeypatch):
    """RBDA-9.7-SIMPLIFY: against NumPy's least squares on all equations at once, in one piece and in many."""
    model = models.arm()
    motion = da.identification.exciting_motion(model, trials=5).at(np.arange(0.0, 10.0, 0.05))
    rng = np.random.default_rng(3)
    tau = da.inverse_dynamics(model, *motion) + rng.standard_normal(motion[1].shape)
    noise = rng.uniform(0.1, 5.0, model.nv)
    base = da.identification.base_parameters(model, armature=True)
    Y = base.reduced(da.identification.inverse_dynamics_regressor(model, *motion, armature=True))
    W = (Y / noise[:, None]).reshape(-1, len(base))
    monkeypatch.setattr(estimation, "SAMPLES_PER_BLOCK", 64)
    result = da.identification.identify(model, *motion, tau, noise=noise, armature=True)
    expected = np.linalg.lstsq(W, (tau / noise).ravel(), rcond=None)[0]
    np.testing.assert_allclose(result.values, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(result.covariance, np.linalg.inv(W.T @ W), rtol=1e-7, atol=1e-10)
    assert result.condition_number == pytest.approx(np.linalg.cond(W / np.linalg.norm(W, axis=0)))
    assert result.names == base.formulas
    assert len(result) == len(base)
    assert str(result).count("\n") == len(base)
    assert "condition" in repr(result)


def test_exact_torques_give_exact_parameters():
    model = equipped_arm()
    motion = excitation().at(np.arange(0.0, 10.0, 0.05).reshape(2, 100))
    result = da.identification.identify(model, *motion, da.inverse_dynamics(model, *motion))
    np.testing.assert_allclose(result.values, experiment("equipped")[3], rtol=1e-8)
    single = [x.astype(np.float32) for x in (*motion, da.inverse_dynamics(model, *motion))]
    np.testing.assert_allclose(da.identification.identify(model, *single).values, result.values, rtol=1e-2)
    still = da.identification.identify(model, *motion, np.zeros((2, 100, 6)))
    np.testing.assert_array_equal(still.values, 0.0)


def test_an_exciting_motion_stays_within_limits_and_is_its_own_derivative():
    model = da.models.arm6()
    t = np.linspace(0.0, 10.0, 5001)
    q, v, a = excitation().at(t)
    limits = [body.limits for body in model.bodies]
    assert (np.abs(q) < np.ravel([x.upper for x in limits])).all()
    assert (np.abs(v) < np.ravel([x.velocity for x in limits])).all()
    assert (np.abs(da.inverse_dynamics(model, q, v, a)) < np.ravel([x.effort for x in limits])).all()
    assert (np.abs(v).max(axis=0) > 0.85 * np.ravel([x.velocity for x in limits])).all()
    h = 1e-5
    ahead, behind = excitation().at(t + h), excitation().at(t - h)
    np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * h), v, atol=1e-7)
    np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * h), a, atol=1e-6)
    np.testing.assert_allclose(q[-1], q[0], atol=1e-12)


def test_searching_pays():
    """Standard deviations after 500 trials are well below those of motions drawn at random."""
    model = da.models.arm6()
    base = da.identification.base_parameters(model)

    def volume(motion):
        q, v, a = motion.at(np.arange(0.0, 10.0, 0.02))
        tau = da.inverse_dynamics(model, q, v, a)
        Y = (
            base.reduced(da.identification.inverse_dynamics_regressor(model, q, v, a))
            / np.sqrt((tau**2).mean(0))[:, None]
        )
        W = Y.reshape(-1, len(base))
        return -np.linalg.slogdet(W.T @ W)[1] / (2 * len(base))  # log of sigma, the parameters' mean

    random = [volume(da.identification.exciting_motion(model, trials=1, seed=seed)) for seed in range(5)]
    assert volume(excitation()) < min(random) - np.log(1.5)
    again = da.identification.exciting_motion(model)
    np.testing.assert_array_equal(again.sine, excitation().sine)
    np.testing.assert_array_equal(again.cosine, excitation().cosine)


def test_joints_with_one_limit_or_none_move_too():
    builder = da.ModelBuilder()
    inertia = da.RigidInertia(1.3, (0.1, 0.05, -0.2), (0.1, 0.12, 0.09))
    builder.add_body("slide", "world", da.Prismatic((1, 0, 0)), inertia=inertia, limits=da.Limits(lower=1.0))
    builder.add_body("arm", "slide", da.Revolute((0, 1, 0)), inertia=inertia)
    q, _, _ = da.identification.exciting_motion(builder.build(), trials=3).at(np.arange(0.0, 10.0, 0.01))
    assert 1.0 < q[:, 0].min() < 1.3
    assert -np.pi < q[:, 1].min()
    assert np.abs(q[:, 1]).max() > 2.5


def test_motions_that_joints_cannot_make_are_refused():
    with pytest.raises(ArgumentError, match="rates of its"):
        da.identification.exciting_motion(models.branched())
    with pytest.raises(ModelError, match=r"model\.tree\(\)"):
        da.identification.exciting_motion(da.models.four_bar())
    with pytest.raises(DalembertError, match="exciting_motion"):
        da.identification.exciting_motion("arm")
    weak = da.models.arm6().with_values({"shoulder.effort": 10.0})
    with pytest.raises(ArgumentError, match="effort"):
        da.identification.exciting_motion(weak, trials=3)
    for options in (
        {"period": 0.0},
        {"period": "10"},
        {"harmonics": 0},
        {"trials": 2.5},
        {"seed": "x"},
        {"seed": -1},
    ):
        with pytest.raises(ArgumentError, match=next(iter(options))):
            da.identification.exciting_motion(da.models.pendulum(), **options)


def test_data_that_cannot_show_the_parameters_are_refused():
    model = da.models.arm6()
    q, v, a = excitation().at(np.arange(0.0, 10.0, 0.1))
    tau = da.inverse_dynamics(model, q, v, a)
    with pytest.raises(ArgumentError, match="6 samples"):
        da.identification.identify(model, q[:6], v[:6], a[:6], tau[:6])
    with pytest.raises(ArgumentError, match="leaves open"):
        da.identification.identify(model, q, 0 * v, 0 * a, da.inverse_dynamics(model, q, 0 * v, 0 * a))
    with pytest.raises(ArgumentError, match="tau holds NaN"):
        da.identification.identify(model, q, v, a, np.where(q > 1.0, np.nan, tau))
    with pytest.raises(ArgumentError, match="v holds NaN"):
        da.identification.identify(model, q, np.full_like(v, np.inf), a, tau)
    with pytest.raises(DalembertError, match="unknowns"):
        da.identification.identify(model, q, v, a, tau, unknowns=[[1.0, 2.0], [3.0]])
    with pytest.raises(ArgumentError, match="noise"):
        da.identification.identify(model, q, v, a, tau, noise=np.zeros(6))
    with pytest.raises(ShapeError, match="noise"):
        da.identification.identify(model, q, v, a, tau, noise=np.ones(5))
    with pytest.raises(ShapeError, match="noise"):
        da.identification.identify(model, q, v, a, tau, noise=np.ones((2, 6)))
    with pytest.raises(ShapeError, match=r"unknowns .* \(60, n\)"):
        da.identification.identify(model, q, v, a, tau, unknowns=np.ones((6, 60)))
    with pytest.raises(ArgumentError, match="unknowns"):
        da.identification.identify(model, q, v, a, tau, unknowns=np.full((60, 1), np.nan))
    with pytest.raises(ShapeError, match="broadcast"):
        da.identification.identify(model, q, v[:50], a, tau)
    with pytest.raises(DalembertError, match="identify"):
        da.identification.identify("arm", q, v, a, tau)
