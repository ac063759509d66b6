"""Springs and dampers between points of bodies: forces, energy, motion, and how models keep them."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.algorithms.applied_forces import spring_energy

BALL = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
OFF_CENTRE = da.RigidInertia(1.5, (0.1, -0.05, 0.2), (0.12, 0.15, 0.1))
LAWS = ("rigid", "compliant")
INTEGRATORS = ("semi_implicit", "euler", "heun", "rk4", "midpoint", "implicit", "variational")


def place(x: float, y: float, z: float) -> da.Transform:
    return da.Transform.from_rotation_translation(np.eye(3), (x, y, z))


def figure() -> da.Model:
    """A free body with two limbs, one of them on a ball joint, a path over three of its bodies and the world,
    a damper without stiffness, and a rope."""
    builder = da.ModelBuilder()
    builder.add_body("trunk", "world", da.Free(), inertia=OFF_CENTRE)
    builder.add_body("arm", "trunk", da.Revolute((0, 1, 0)), inertia=OFF_CENTRE, placement=place(0.3, 0, 0.1))
    builder.add_body("hand", "arm", da.Spherical(), inertia=OFF_CENTRE, placement=place(0.2, 0, 0))
    builder.add_frame("tip", "hand", place(0.1, 0.1, 0.0))
    path = [("world", (0.5, 0.0, 2.0)), ("tip", (0.0, 0.0, 0.1)), ("trunk", (-0.2, 0.1, 0.0))]
    builder.add_spring("path", path, stiffness=40.0, damping=2.0, rest_length=1.0)
    builder.add_spring("damper", [("hand", (0, 0, 0.1)), ("trunk", (0, 0.3, 0))], damping=3.0)
    builder.add_spring(
        "rope", [("arm", (0, 0, 0.1)), ("world", (0, 0, 0))], stiffness=9.0, rest_length=(0, 0.2)
    )
    return builder.build()


def moving_states(model: da.Model, count: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    q, v = zip(*(model.random_state(rng) for _ in range(count)), strict=True)
    return np.array(q), np.array(v)


def hanging(stiffness: float, damping: float = 0.0, rest: float = 0.5) -> da.Model:
    """A ball that hangs 0.5 m below the world's origin, by a spring."""
    builder = da.ModelBuilder()
    builder.add_body("ball", "world", da.Free(), inertia=BALL)
    points = [("world", (0.0, 0.0, 0.0)), ("ball", (0.0, 0.0, 0.0))]
    builder.add_spring("spring", points, stiffness=stiffness, damping=damping, rest_length=rest)
    return builder.build()


def below(model: da.Model, depth: float) -> np.ndarray:
    q = np.array(model.neutral())
    q[2] = -depth
    return q


class TestForces:
    def test_forces_are_the_slope_of_the_energy(self) -> None:
        model = figure()
        for q, _ in zip(*moving_states(model), strict=True):
            tau, step = da.passive_forces(model, q, np.zeros(model.nv)), 1e-6
            for k, along in enumerate(np.eye(model.nv) * step):
                ahead, back = (spring_energy(model, list(da.integrate(model, q, s * along))) for s in (1, -1))
                assert tau[k] == pytest.approx(-(ahead - back) / (2 * step), abs=2e-7)

    def test_dampers_take_the_square_of_the_rates_of_their_lengths(self) -> None:
        model = figure().with_values({"path.stiffness": 0.0, "rope.stiffness": 0.0})
        lengths = {}
        for name in ("path", "damper"):  # l of each by the energy of a spring of 2 N/m without rest length
            alone = {f"{other}.stiffness": 0.0 for other in ("path", "damper", "rope")}
            lengths[name] = model.with_values(alone | {f"{name}.stiffness": 2.0, f"{name}.rest_length": 0.0})
        step = 1e-6
        for q, v in zip(*moving_states(model), strict=True):
            taken = 0.0
            for name, d in (("path", 2.0), ("damper", 3.0)):
                ends = [list(da.integrate(model, q, s * step * v)) for s in (1, -1)]
                ahead, back = (np.sqrt(spring_energy(lengths[name], end)) for end in ends)
                taken += d * ((ahead - back) / (2 * step)) ** 2
            assert -(da.passive_forces(model, q, v) @ v) == pytest.approx(taken, rel=1e-6)

    def test_a_rope_pulls_only_where_it_is_stretched(self) -> None:
        model, rope = hanging(100.0, rest=0.5), rope_model()
        forces = [da.passive_forces(rope, below(rope, z), np.zeros(6))[5] for z in (0.3, 0.5, 0.6)]
        assert forces == pytest.approx([0.0, 0.0, 10.0], abs=1e-12)
        assert da.passive_forces(model, below(model, 0.3), np.zeros(6))[5] == pytest.approx(-20.0)

    def test_forces_are_those_of_mujoco_on_moving_states(self) -> None:
        mujoco = pytest.importorskip("mujoco")
        body = '<body{}><joint type="{}" axis="0 1 0"/><geom type="sphere" size=".1" mass="1"/>{}</body>'
        tip = '<site name="tip" pos=".1 .1 .1"/>'
        limbs = body.format(' pos=".3 0 .1"', "hinge", body.format(' pos=".2 0 0"', "ball", tip))
        trunk = '<site name="back" pos="-.2 .1 0"/>'
        text = f"""<mujoco><worldbody><site name="nail" pos=".5 0 2"/>
            {body.format("", "free", trunk + limbs).replace(' axis="0 1 0"/>', "/>", 1)}
            </worldbody><tendon><spatial stiffness="40" damping="2" springlength="0.9 1.0">
            <site site="nail"/><site site="tip"/><site site="back"/></spatial></tendon></mujoco>"""
        theirs = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(theirs)
        builder = da.ModelBuilder()
        builder.add_body("trunk", "world", da.Free(), inertia=BALL)
        builder.add_body("arm", "trunk", da.Revolute((0, 1, 0)), inertia=BALL, placement=place(0.3, 0, 0.1))
        builder.add_body("hand", "arm", da.Spherical(), inertia=BALL, placement=place(0.2, 0, 0))
        points = [("world", (0.5, 0.0, 2.0)), ("hand", (0.1, 0.1, 0.1)), ("trunk", (-0.2, 0.1, 0.0))]
        builder.add_spring("path", points, stiffness=40.0, damping=2.0, rest_length=(0.9, 1.0))
        model = builder.build()
        for q, v in zip(*moving_states(model), strict=True):
            R = da.forward_kinematics(model, q).rotation[0]
            data.qpos, data.qvel = q, [*(R @ v[3:6]), *v[:3], *v[6:]]
            mujoco.mj_forward(theirs, data)
            tau = data.qfrc_passive
            expected = [*tau[3:6], *(R.T @ tau[:3]), *tau[6:]]
            assert da.passive_forces(model, q, v) == pytest.approx(expected, abs=1e-9)


def rope_model() -> da.Model:
    builder = da.ModelBuilder()
    builder.add_body("ball", "world", da.Free(), inertia=BALL)
    points = [("world", (0.0, 0.0, 0.0)), ("ball", (0.0, 0.0, 0.0))]
    builder.add_spring("rope", points, stiffness=100.0, rest_length=(0.0, 0.5))
    return builder.build()


class TestMotion:
    @pytest.mark.parametrize("integrator", INTEGRATORS)
    def test_a_weight_on_a_spring_swings_as_the_closed_form(self, integrator: str) -> None:
        model, k = hanging(100.0), 100.0
        run = da.rollout(
            model, below(model, 0.5), np.zeros(6), steps=2000, dt=2e-4, integrator=integrator, every=50
        )
        sag, omega = 9.81 / k, np.sqrt(k)
        exact = -0.5 - sag * (1.0 - np.cos(omega * run.time))
        error = np.abs(run.q[:, 2] - exact).max()
        assert error < {"rk4": 1e-10, "heun": 1e-6, "variational": 1e-6}.get(integrator, 4e-4)

    @pytest.mark.parametrize("law", LAWS)
    def test_the_same_in_steps_with_contact(self, law: str) -> None:
        model = hanging(100.0, 1.0)
        errors = []
        for dt in (2e-3, 1e-3):
            steps = round(0.5 / dt)
            run = da.rollout(model, below(model, 0.5), np.zeros(6), steps=steps, dt=dt, contact=law)
            a, omega = 0.5, np.sqrt(100.0 - 0.25)
            t = run.time
            decay = np.exp(-a * t) * (np.cos(omega * t) + a / omega * np.sin(omega * t))
            exact = -0.5 - 0.0981 * (1.0 - decay)
            errors.append(np.abs(run.q[:, 2] - exact).max())
        assert errors[0] < 4e-3
        assert errors[1] < 0.6 * errors[0]

    @pytest.mark.parametrize(
        "options", [{"contact": "rigid"}, {"contact": "compliant"}, {"integrator": "implicit"}]
    )
    def test_stiff_springs_and_dampers_do_not_limit_the_step(self, options: dict[str, str]) -> None:
        model = hanging(1e8, 1e6)
        start = below(model, 0.6)
        run = da.rollout(model, start, np.zeros(6), steps=400, dt=0.005, **options)
        assert not run.failed
        assert run.q[-1, 2] == pytest.approx(-0.5, abs=1e-5)

    def test_a_stiff_damper_is_implicit_in_the_default_integrator(self) -> None:
        model = hanging(0.0, 1e6)
        run = da.rollout(model, below(model, 0.5), np.zeros(6), steps=200, dt=0.005)
        assert run.v[-1, 5] == pytest.approx(-9.81 / 1e6, rel=1e-6)

    def test_stiff_springs_over_several_joints(self) -> None:
        model = figure().with_values({"path.damping": 1e5, "damper.damping": 1e5, "rope.stiffness": 1e6})
        q, v = (x[0] for x in moving_states(model, 1))
        for options in ({"contact": "rigid"}, {"contact": "compliant"}, {"integrator": "implicit"}):
            run = da.rollout(model, q, v, steps=500, dt=0.002, **options)
            assert not run.failed, options
            assert run.energy_gain == 0.0

    @pytest.mark.parametrize(
        "options", [{"contact": "rigid"}, {"integrator": "rk4"}, {"integrator": "midpoint"}]
    )
    def test_springs_inside_keep_the_momentum(self, options: dict[str, str]) -> None:
        builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
        for name in ("a", "b"):
            builder.add_body(name, "world", da.Free(), inertia=OFF_CENTRE)
        points = [("a", (0.1, 0.0, 0.3)), ("b", (0.0, 0.2, 0.0))]
        builder.add_spring("spring", points, stiffness=50.0, damping=0.5, rest_length=0.3)
        model = builder.build()
        q, v = (x[0] for x in moving_states(model, 1))
        run = da.rollout(model, q, v, steps=500, dt=0.002, **options)
        h = da.dynamics.centroidal_momentum(model, run.q, run.v)[:, 3:]
        assert np.abs(h - h[0]).max() < 1e-10 * np.abs(v).max()


class TestParameters:
    def test_values_per_sample_are_those_of_models_with_them(self) -> None:
        model, k = figure(), np.array([10.0, 40.0, 90.0])
        q, v = moving_states(model, 3)
        rest = np.array([[0.0, 0.1], [0.0, 0.2], [0.1, 0.3]])
        given = {
            "path.stiffness": k,
            "rope.rest_length": rest,
            "path.rest_length": k / 50,
            "damper.damping": k,
        }
        for options in ({"contact": "rigid"}, {"integrator": "implicit"}, {}):
            runs = da.rollout(model, q, v, steps=50, parameters=given, **options)
            for i in range(3):
                own = model.with_values({name: values[i] for name, values in given.items()})
                alone = da.rollout(own, q[i], v[i], steps=50, **options)
                assert runs.q[i] == pytest.approx(alone.q, abs=1e-11)


class TestModels:
    def test_saved_models_keep_springs(self, tmp_path) -> None:
        model = figure()
        assert da.Model.from_json(model.to_json()) == model
        assert "path: world – hand – trunk" in model.summary()
        assert model.with_values({"path.damping": 3.0}) != model

    def test_springs_follow_surgery(self) -> None:
        model = figure()
        q, v = (x[0] for x in moving_states(model, 1))
        locked = model.lock(["arm"], q)
        rest = [k for k in range(model.nv) if k != model.joint("arm").v_slice.start]
        start = model.joint("arm").q_slice.start
        forces = da.passive_forces(locked, np.delete(q, start), v[rest])
        v[model.joint("arm").v_slice] = 0.0
        assert forces == pytest.approx(da.passive_forces(model, q, v)[rest], abs=1e-12)
        merged = locked.lumped()
        assert da.passive_forces(merged, np.delete(q, start), v[rest]) == pytest.approx(forces, abs=1e-12)
        both = model.attach(model, prefix="b_", placement=place(0.0, 3.0, 0.0))
        at = np.concatenate([q, q])
        twice = da.passive_forces(both, at, np.concatenate([v, v]))
        assert twice[: model.nv] == pytest.approx(twice[model.nv :], abs=1e-12)
        assert both.springs.names == ("path", "damper", "rope", "b_path", "b_damper", "b_rope")

    @pytest.mark.parametrize(
        ("points", "options", "text"),
        [
            ([("trunk", (0, 0, 0))], {}, "1 point;"),
            ([], {"joints": {}}, "0 points and 0 joints"),
            ([], {"joints": {"trunk": 1.0}}, "6 degrees of freedom"),
            ([], {"joints": {"leg": 1.0}}, "leg"),
            ([("trunk", (0, 0, 1)), ("world", (0, 0, 0))], {"weights": (1.0, 1.0)}, "the 1 lines"),
            ([("trunk", (0, 0, 1)), ("world", (0, 0, 0))], {"limits": (2.0, 1.0)}, "limits is"),
            ([("trunk", (0, 0, 0)), ("leg", (0, 0, 0))], {}, "leg"),
            ([("trunk", (0, 0, np.nan)), ("world", (0, 0, 0))], {}, "give 3 finite numbers"),
            ([("trunk", (0, 0, 1)), ("world", (0, 0, 0))], {"stiffness": -1.0}, "stiffness"),
            ([("trunk", (0, 0, 1)), ("world", (0, 0, 0))], {"rest_length": (2.0, 1.0)}, "rest_length"),
        ],
    )
    def test_errors_name_the_spring(self, points, options, text) -> None:
        builder = da.ModelBuilder()
        builder.add_body("trunk", "world", da.Free(), inertia=BALL)

        def build() -> None:
            builder.add_spring("spring", points, **options)
            builder.build()

        with pytest.raises(da.errors.DalembertError, match=text):
            build()

    def test_a_spring_shares_no_name_with_a_joint(self) -> None:
        builder = da.ModelBuilder()
        builder.add_body("trunk", "world", da.Free(), inertia=BALL)
        with pytest.raises(da.errors.ModelError, match='already a joint "trunk"'):
            builder.add_spring("trunk", [("trunk", (0, 0, 1)), ("world", (0, 0, 0))])
