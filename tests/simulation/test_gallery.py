"""The gallery's examples of mechanics, run as they stand: each obeys the law that it is about.

Tolerances follow from the steps: RK4's errors are far below those of reading times off between samples; a
step with contact is of the first order, with errors of dt times the fastest rate.
"""

import io
import runpy
import tokenize
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da

FOLDER = Path(__file__).parents[2] / "examples" / "mechanics"
EXAMPLES = sorted(FOLDER.glob("plot_*.py"))
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    """Pictures are drawn and thrown away."""
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def example(name):
    """What an example knows when it has ended; it has drawn one picture."""
    found = runpy.run_path(str(FOLDER / f"plot_{name}.py"))
    assert len(plt.get_fignums()) == 1
    return found


@pytest.fixture(scope="module")
def rattleback():
    plt.switch_backend("Agg")
    return runpy.run_path(str(FOLDER / "plot_rattleback.py"))


def crossings(time, values):
    """The times at which values that rise pass zero, between samples by straight lines."""
    k = np.flatnonzero((values[:-1] < 0.0) & (values[1:] >= 0.0))
    return time[k] + (time[k + 1] - time[k]) * values[k] / (values[k] - values[k + 1])


def world_spin(motion):
    """The angular velocity of the first body along world axes."""
    return np.einsum("...ij,...j->...i", motion.poses().rotation[..., 0, :, :], motion.v[..., :3])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_have_less_than_thirty_lines_of_code(path):
    tokens = [
        t for t in tokenize.generate_tokens(io.StringIO(path.read_text()).readline) if t.type not in LAYOUT
    ]
    assert tokens[0].type == tokenize.STRING  # what it is about
    assert len({row for t in tokens[1:] for row in range(t.start[0], t.end[0] + 1)}) < 30


def test_pendulum_periods_are_elliptic_integrals():
    """RK4 with 1,000 steps a period; what remains is the straight line between two samples, 3e-9."""
    found = example("pendulum")
    np.testing.assert_allclose(found["periods"], found["formula"], rtol=1e-8)
    energy = found["swing"].energy()
    assert np.abs(energy - energy[:, :1]).max() < 1e-9


def test_gyroscope_precesses_and_nods_at_the_rates_of_the_formulas():
    """RK4 errs by (spin dt)^5 / 120 a step, 4e-7 of the precession and of the leaning in 3 s; the nod has an
    amplitude of 5e-4 rad, of which that is 2e-4.
    """
    found = example("gyroscope")
    time, axis = found["motion"].time, found["axis"]
    around = np.unwrap(np.arctan2(axis[0, :, 1], axis[0, :, 0]))
    np.testing.assert_allclose(around, found["precession"] * time, rtol=1e-6, atol=1e-5)
    assert np.ptp(axis[0, :, 2]) < 1e-6  # the steady one does not nod
    nods = crossings(time, np.arccos(axis[1, :, 2]) - found["lean"])
    np.testing.assert_allclose(2.0 * np.pi / np.diff(nods).mean(), found["nutation"], rtol=5e-5)


def test_dzhanibekov_turns_come_at_the_times_of_eulers_equations():
    """Straight lines between samples 1 ms apart; RK4 keeps angular momentum to 1e-9."""
    found = example("dzhanibekov")
    spins, moments = found["spins"], found["moments"]
    middle = spins.v[1, :, 1]
    turns = np.sort(np.concatenate([crossings(spins.time, middle), crossings(spins.time, -middle)]))
    assert len(turns) == 4
    np.testing.assert_allclose(np.diff(turns), found["between"], rtol=1e-7)
    for k in (0, 2):  # the stable axes
        assert np.abs(spins.v[k, :, :3] - 12.0 * np.eye(3)[k]).max() < 0.05
    momentum = np.einsum("ktij,ktj->kti", spins.poses().rotation[:, :, 0], moments * spins.v[..., :3])
    assert np.abs(momentum - momentum[:, :1]).max() < 1e-9 * np.abs(momentum).max()


def test_cat_turns_over_without_angular_momentum():
    """The variational step keeps momentum to rounding; motors follow their targets to 2e-3 of the turn."""
    found = example("cat")
    fall = found["fall"]
    assert np.abs(fall.observed["momentum"][:, :3]).max() < 1e-11
    back = fall.poses().rotation[:, 0, :, 2]
    assert back[0] @ [0.0, 0.0, 1.0] == -1.0
    np.testing.assert_allclose(back[-1], [0.0, 0.0, 1.0], atol=5e-3)
    height = da.dynamics.center_of_mass(fall.model, fall.q)[:, 2]
    np.testing.assert_allclose(height, height[0] - 0.5 * 9.81 * fall.time**2, atol=1e-3)


def test_cradle_hands_momentum_and_energy_through():
    """In a step of 0.02 ms a ball at 0.74 m/s moves by 15 um, by which collisions come too early."""
    found = example("newtons_cradle")
    swing, time = found["motion"], found["motion"].time
    for sample, moving in ((0, 1), (1, 2)):
        q, v = swing.q[sample], swing.v[sample]
        out = np.arange(5) >= 5 - moving
        top = q[:, out].max(axis=0)
        np.testing.assert_allclose(top, np.radians(25.0), rtol=1e-4)
        still = (time > 0.35) & (time < 0.75)  # those that came in hang, those that go out fly
        assert np.abs(q[still][:, ~out]).max() < 2e-3
        assert np.abs(v[still][:, ~out]).max() < 0.01 * np.abs(v).max()
        energy = swing[sample].energy()
        lifted = moving * found["mass"] * 9.81 * found["length"] * (1.0 - np.cos(np.radians(25.0)))
        assert np.ptp(energy) < 5e-4 * lifted


def test_four_bar_keeps_its_coupler_long_and_its_energy():
    """RK4 with 800 steps a turn; the loop is kept by construction of the step."""
    found = example("four_bar")
    crank, _, rocker = found["motion"].q.T
    pins = found["crank"] * np.exp(1j * crank), found["ground"] + found["rocker"] * np.exp(1j * rocker)
    np.testing.assert_allclose(np.abs(pins[1] - pins[0]), found["coupler"], rtol=0.0, atol=1e-9)
    assert crank[-1] - crank[0] > 4.0 * np.pi
    ends = [  # where crank and coupler are in line, by the law of cosines
        np.pi - np.arccos((1.0 + 0.7**2 - (0.9 + side * 0.3) ** 2) / (2.0 * 0.7)) for side in (1.0, -1.0)
    ]
    np.testing.assert_allclose([rocker.min(), rocker.max()], ends, atol=2e-3)  # the nearest of the frames
    energy = found["motion"].energy()
    assert np.ptp(energy) < 1e-8 * energy.max()


def rolling_stone(w, time):
    """The spin of the rattleback, from the equations of Newton and Euler for pure rolling, by SciPy.

    In body axes, u the upward direction and r from the centre of mass to the contact of the ellipsoid:
    v = r x w, I w' + w x I w = r x F, F = m (v' + w x v + g u), u' = u x w.
    """
    squares, center, g = np.array([0.2, 0.03, 0.02]) ** 2, np.array([0.0, 0.0, -0.01]), 9.81
    I = np.array([[0.0002, -0.0002, 0.0], [-0.0002, 0.0016, 0.0], [0.0, 0.0, 0.0017]])

    def rate(_, y):
        w, u = y[:3], y[3:]
        du, size = np.cross(u, w), np.sqrt(u @ (squares * u))
        r = -squares * u / size - center
        dr = squares * (u * (u @ (squares * du)) / size**2 - du) / size
        rest = np.cross(dr, w) + np.cross(w, np.cross(r, w)) + g * u
        inertia = I + (r @ r) * np.eye(3) - np.outer(r, r)
        return np.concatenate([np.linalg.solve(inertia, np.cross(r, rest) - np.cross(w, I @ w)), du])

    found = solve_ivp(rate, time[[0, -1]], [*w, 0.0, 0.0, 1.0], t_eval=time, rtol=1e-8, atol=1e-10)
    return (found.y[:3] * found.y[3:]).sum(axis=0)


@pytest.mark.parametrize(("sample", "until", "error"), [(0, 2.0, 0.002), (1, 0.4, 0.04)])
def test_rattleback_turns_back_as_a_rolling_stone(rattleback, sample, until, error):
    """The errors of a first-order step grow with the rattling: five times as long a step errs by five times
    as much, 0.0058 and 0.163 rad/s.
    """
    motion = rattleback["motion"]
    early = motion.time <= until
    spin = world_spin(motion)[sample, :, 2]
    assert np.abs(spin[early] - rolling_stone(motion.v[sample, 0, :3], motion.time[early])).max() < error
    assert -np.sign(spin[0]) * spin[-1 if sample == 0 else 300] > 3.0
    energy = motion.energy()[sample]
    assert energy.max() < energy[0] + 1e-6


def test_disc_precesses_at_eulers_rate():
    """The step is of the first order: dt times the rate is 1.5e-3, and so is the error, at the flattest."""
    found = example("rolling_disc")
    np.testing.assert_allclose(found["rates"], found["formula"], rtol=3e-3)
    motion = found["motion"]
    assert np.abs(motion.q[..., :2]).max() < 1e-3 * found["radius"]  # its centre rests
    assert np.abs(motion.contacts.gap).max() < 1e-6


def test_small_ball_rises_up_to_nine_times_as_high():
    """Over the gap of 1 mm both balls lose g t = 1.6 mm/s, t = gap / (2 v): 3e-4 of the height; a step before
    the ground is reached adds 6e-5 m.
    """
    found = example("ball_stack")
    height = found["height"].max(axis=1)
    np.testing.assert_allclose(height, found["expected"], rtol=5e-4)
    assert height[0] > 8.99 * found["fall"]
    assert (np.diff(height) < 0.0).all()


def test_humanoid_falls_down_the_stairs_losing_energy_and_is_borne_by_the_ground():
    """TOD-CONTACT"""
    fall = example("stairs")["fall"]
    assert not fall.failed
    model, force = fall.model, fall.contacts.force
    assert fall.contacts.gap.min() > -2e-3
    bent = da.difference(model, np.broadcast_to(fall.q[0], fall.q.shape), fall.q)[:, 6:]
    springs = 0.5 * 15.0 * (bent * bent).sum(axis=1)
    assert np.diff(fall.energy() + springs).max() < 1e-9
    outer = np.isin([first for first, _ in fall.contacts.names], ["ground", "stairs"])
    weight = np.array([0.0, 0.0, float(model.total_mass) * 9.81])
    momentum = da.dynamics.centroidal_momentum(model, fall.q, fall.v)[..., 3:]
    impulse = (force[:, outer].sum(axis=1) - weight).sum(axis=0) * 0.002
    np.testing.assert_allclose(momentum[-1] - momentum[0], impulse, atol=2.0)
    assert np.abs(fall.v[-1]).max() < 1e-2
    height = da.dynamics.center_of_mass(model, fall.q[[0, -1]])[:, 2]
    assert height[0] > 1.4
    assert height[1] < 0.2
    np.testing.assert_allclose(force[-1, outer].sum(axis=0), weight, atol=0.01 * weight[2])
