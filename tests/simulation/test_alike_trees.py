"""Trees that are alike, as rows of one tree: steps are those of code for each tree by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.codegen.gpu.launching import LAYOUTS, run_on_host, source_of
from tests.codegen.sample_programs import run

import dalembert as da
from dalembert.codegen import compile_program
from dalembert.codegen.gpu import ptx_of
from dalembert.compiler import alike_trees
from dalembert.model.joints import TimeDependent
from dalembert.simulation.sensors import ContactForce, FramePose, Imu, JointWrench
from dalembert.simulation.step_function import rollout_kernel
from dalembert.simulation.step_plan import StepPlan

STEPS, DT = 40, 0.004


def add_boxes(builder: Any, count: int, *, name: str = "box") -> None:
    """Loose bodies of different masses and sizes, off their centres: a box and a ball in turn."""
    for k in range(count):
        mass = 0.5 + 0.2 * k
        size = (0.1, 0.08, 0.06 + 0.01 * k)
        shape = da.shapes.Box(size) if k % 2 else da.shapes.Sphere(0.04 + 0.004 * k)
        moments = mass * np.array([[2e-3, 1e-4, 0.0], [1e-4, 3e-3, 0.0], [0.0, 0.0, 2.5e-3]])
        solid = da.RigidInertia(mass, (0.01, -0.004 * k, 0.005), moments)
        builder.add_body(f"{name}{k}", "world", da.Free(), inertia=solid, shapes=[shape])


def add_crawler(builder: Any, name: str, *, mass: float, reach: float) -> None:
    """A trunk with two legs of two joints: ranges, springs, damping, dry friction and armatures; one ankle
    follows its knee."""
    solid = da.RigidInertia(mass, (0.0, 0.0, 0.01), np.diag([2e-3, 3e-3, 2.5e-3]) * mass)
    limb = da.RigidInertia(0.3 * mass, (0.0, 0.0, -0.05), np.diag([1e-3, 1e-3, 2e-4]) * mass)
    trunk = [da.shapes.Box((0.2, 0.1, 0.06))]
    builder.add_body(f"{name} trunk", "world", da.Free(), inertia=solid, shapes=trunk)
    for side in (-1.0, 1.0):
        part = f"{name} {'left' if side > 0 else 'right'}"
        hip = da.Transform.from_rotation_translation(np.eye(3), (side * reach, 0.0, -0.02))
        knee = da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.0, -0.1))
        foot = [da.shapes.Sphere(0.02, placement=knee)]
        thigh = {"limits": da.Limits(-0.3 * mass, 0.4), "damping": 0.02 * mass, "friction": 0.01}
        builder.add_body(
            f"{part} thigh", f"{name} trunk", da.Revolute((0, 1, 0)), placement=hip, inertia=limb, **thigh
        )
        shin = {"stiffness": 2.0 * mass, "armature": 1e-3 * mass, "shapes": foot}
        builder.add_body(
            f"{part} shin", f"{part} thigh", da.Revolute((0, 1, 0)), placement=knee, inertia=limb, **shin
        )
    builder.add_coupling(f"{name} ankles", {f"{name} left shin": 1.0, f"{name} right shin": 0.5})


def crawlers() -> da.Model:
    """Three crawlers of different masses among loose bodies, and a hinged flap by itself."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    add_boxes(builder, 2)
    for k in range(3):
        add_crawler(builder, f"crawler{k}", mass=0.6 + 0.3 * k, reach=0.08 + 0.01 * k)
    flap = da.RigidInertia(1.0, (0.1, 0.0, 0.0), np.diag([1e-3, 4e-3, 4e-3]))
    place = da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.4, 0.3))
    builder.add_body(
        "flap",
        "world",
        da.Revolute((0, 1, 0)),
        placement=place,
        inertia=flap,
        shapes=[da.shapes.Capsule(0.02, 0.1)],
    )
    add_boxes(builder, 3, name="more")
    return builder.build().with_ground(friction=0.7)


def loose() -> da.Model:
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    add_boxes(builder, 7)
    return builder.build().with_ground(friction=0.5)


def rough() -> da.Model:
    """Loose bodies that rebound, whose surfaces resist turning."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    for k in range(7):
        shape = da.shapes.Box((0.1, 0.08, 0.05 + 0.01 * k)) if k % 2 else da.shapes.Sphere(0.05)
        shape = replace(shape, friction=(0.6, 0.02, 0.001), condim=6, restitution=0.1 * k)
        builder.add_body(
            f"part{k}", "world", da.Free(), inertia=shape.inertia(mass=0.3 + 0.1 * k), shapes=[shape]
        )
    return builder.build().with_ground(friction=0.5)


def pile(model: da.Model, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A moving pile: trees above each other, turned and thrown at random."""
    rng = np.random.default_rng(seed)
    q, v = np.array(model.neutral()), rng.normal(size=model.nv) * 0.5
    height = 0.05
    for joint in model.joints:
        if joint.kind != "free":
            if joint.nq:
                q[joint.q_slice] = 0.2 * rng.normal(size=joint.nq)
            continue
        height += 0.13
        own = q[joint.q_slice]
        own[:3] = [*(0.03 * rng.normal(size=2)), height]
        own[3:] = np.array([1.0, 0.0, 0.0, 0.0]) + 0.3 * rng.normal(size=4)
        own[3:] /= np.linalg.norm(own[3:])
    return q, v


def both(monkeypatch: pytest.MonkeyPatch, make: Any, run: Any) -> tuple[Any, Any]:
    """Return what a run gives with rows of trees, and with code for each tree."""
    found = []
    for least in (1, 10**9):
        monkeypatch.setattr(alike_trees, "MIN_ALIKE_VARIABLES", least)
        found.append(run(make()))
    return found[0], found[1]


def check_alike(one: Any, other: Any) -> None:
    for name, digits in (("q", 1e-11), ("v", 1e-9)):
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(a, b, rtol=0.0, atol=digits * np.abs(b).max(), err_msg=name)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("make", [loose, crawlers, rough])
@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_steps_are_those_of_code_for_each_tree(monkeypatch: pytest.MonkeyPatch, make: Any, law: str) -> None:
    """Bodies of different masses, with and without joints, among others that have no like."""

    def run(model: da.Model) -> Any:
        q, v = pile(model)
        options = {"contact": law, "record_contacts": True, "observe": ["contact_work", "contact_forces"]}
        return da.rollout(model, q, v, steps=STEPS, dt=DT, **options)

    one, other = both(monkeypatch, make, run)
    check_alike(one, other)
    forces = other.observed["contact_forces"]
    np.testing.assert_allclose(
        one.observed["contact_forces"], forces, rtol=0.0, atol=1e-8 * np.abs(forces).max()
    )
    assert np.abs(forces).max() > 1.0
    assert (np.linalg.norm(other.q[-1] - other.q[0]) > 0.05).all()


def test_trees_are_alike_that_differ_in_numbers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of another structure, nor a joint by itself, nor trees with motors at other places; and few
    are not worth it."""
    model = crawlers()
    roots = alike_trees.root_bodies(model)
    first = {model.bodies[own[0]].name: number for number, own in enumerate(roots)}
    boxes = [first[name] for name in ("box0", "box1", "more0", "more1", "more2")]
    walking = [first[f"crawler{k} trunk"] for k in range(3)]
    assert alike_trees.alike_trees(model) is None
    monkeypatch.setattr(alike_trees, "MIN_ALIKE_VARIABLES", 28)
    assert alike_trees.alike_trees(model) == sorted([boxes, [first["flap"]], *([k] for k in walking)])
    monkeypatch.setattr(alike_trees, "MIN_ALIKE_VARIABLES", 1)
    assert alike_trees.alike_trees(model) == sorted([boxes, walking, [first["flap"]]])
    knees = [model.joint(f"crawler{k} left shin").v_slice.start for k in range(3)]
    assert alike_trees.alike_trees(model, knees) == sorted([boxes, walking, [first["flap"]]])
    apart = alike_trees.alike_trees(model, knees[1:2])
    assert apart == sorted([boxes, [walking[0], walking[2]], [walking[1]], [first["flap"]]])


def test_trees_that_gears_tie_to_each_other_are_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike_trees, "MIN_ALIKE_VARIABLES", 1)
    builder = da.ModelBuilder()
    add_boxes(builder, 3)
    solid = da.RigidInertia(1.0, (0.0, 0.0, 0.0), np.diag([1.0, 1.0, 1.0]))
    for name in ("driver", "follower"):
        builder.add_body(name, "world", da.Revolute((0, 0, 1)), inertia=solid)
    assert alike_trees.alike_trees(builder.build()) is not None
    builder.add_coupling("gear", {"driver": 1.0, "follower": 2.0})
    assert alike_trees.alike_trees(builder.build()) is None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_a_sample_has_the_same_bits_alone_and_in_a_batch(monkeypatch: pytest.MonkeyPatch, law: str) -> None:
    monkeypatch.setattr(alike_trees, "MIN_ALIKE_VARIABLES", 1)
    model = loose()
    q, v = (np.array(part) for part in zip(*(pile(model, seed) for seed in range(6)), strict=True))
    many = da.rollout(model, q, v, steps=STEPS, dt=DT, contact=law)
    for k in (0, 3, 5):
        alone = da.rollout(model, q[k], v[k], steps=STEPS, dt=DT, contact=law)
        assert np.array_equal(alone.q, many.q[k])
        assert np.array_equal(alone.v, many.v[k])


def stirred(model: da.Model, law: Any, *, samples: int = 5, **more: Any) -> Any:
    """Samples in which external forces, values of a body given at run time, and resets differ."""
    rng = np.random.default_rng(2)
    starts = [pile(model, seed) for seed in range(samples)]
    q, v = (np.array([start[k] for start in starts]) for k in range(2))
    forces = rng.normal(size=(samples, 1, len(model.bodies), 6)) * 0.3
    resets = np.zeros((samples, STEPS))
    resets[1, 17] = resets[3, 5] = 1.0
    name = model.bodies[1].name
    values = {
        f"{name}.mass": rng.uniform(0.5, 2.0, samples),
        f"{name}.com": rng.uniform(-0.01, 0.01, (samples, 3)),
        "gravity": np.array([0.5, 0.0, -8.0]),
    }
    given = {
        "external_forces": forces,
        "external_frame": "center",
        "reset": resets,
        "parameters": values,
        **more,
    }
    return da.rollout(model, q, v, steps=STEPS, dt=DT, contact=law, **given)


SURFACES = {
    "rigid": da.contact.Rigid(),
    "compliant": da.contact.Compliant(),
    "law": da.contact.Law(
        normal=da.contact.LinearSurface(1e4, 50.0), friction_stiffness=1e4, friction_damping=20.0
    ),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("law", SURFACES)
def test_run_time_values_forces_and_resets_reach_each_tree(monkeypatch: pytest.MonkeyPatch, law: str) -> None:
    one, other = both(monkeypatch, loose, lambda model: stirred(model, SURFACES[law]))
    check_alike(one, other)
    plain = stirred(loose(), SURFACES[law], parameters=None)
    assert np.abs(plain.q[:, -1] - other.q[:, -1]).max() > 1e-3  # the values given do act


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_servos_hold_alike_robots(monkeypatch: pytest.MonkeyPatch, law: str) -> None:
    """Motors of gains of their own are wide, too; tau of each robot is that which it has alone."""

    def run(model: da.Model) -> Any:
        q, v = pile(model)
        kp = np.zeros(model.nv)
        for joint in model.joints:
            if joint.kind != "free":
                kp[joint.v_slice] = 5.0 + 0.5 * joint.v_slice.start
        servo = da.control.Servo(kp=kp, kd=0.05 * kp, effort=1.0)
        return da.rollout(model, q, v, servo, steps=STEPS, dt=DT, contact=law)

    one, other = both(monkeypatch, crawlers, run)
    check_alike(one, other)
    np.testing.assert_allclose(one.tau, other.tau, rtol=0.0, atol=1e-8 * np.abs(other.tau).max())
    assert np.abs(other.tau).max() > 0.5


def moved() -> da.Model:
    """Loose bodies between a lift that is prescribed and a pusher that depends on time."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    add_boxes(builder, 3)
    plate = da.shapes.Box((0.6, 0.6, 0.02))
    builder.add_body(
        "lift", "world", da.Prismatic((0, 0, 1)), inertia=plate.inertia(mass=3.0), shapes=[plate]
    )
    add_boxes(builder, 4, name="more")
    push = TimeDependent(da.Fixed(), driver=da.Prismatic((1, 0, 0)), motion=lambda t: [0.5 * t])
    side = da.Transform.from_rotation_translation(np.eye(3), (-0.35, 0.0, 0.3))
    wall = da.shapes.Box((0.02, 0.6, 0.6))
    builder.add_body("pusher", "world", push, placement=side, inertia=wall.inertia(mass=1.0), shapes=[wall])
    return builder.build().with_ground(friction=0.5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_trees_that_move_as_given_stay_themselves(monkeypatch: pytest.MonkeyPatch, law: str) -> None:
    """A lift by itself and a pusher carry and push loose bodies, which are rows; its force is recorded."""

    def run(model: da.Model) -> Any:
        q, v = pile(model)
        lift = {"lift": lambda model, t: [0.02 + 0.3 * da.scalar.sin(3.0 * t)]}
        resets = np.zeros(STEPS)
        resets[9] = 1.0
        return da.rollout(model, q, v, steps=STEPS, dt=DT, contact=law, prescribed=lift, reset=resets)

    one, other = both(monkeypatch, moved, run)
    check_alike(one, other)
    np.testing.assert_allclose(one.tau, other.tau, rtol=0.0, atol=1e-7 * np.abs(other.tau).max())
    assert np.abs(other.tau).max() > 20.0


def linkage() -> da.Model:
    """A four-bar linkage above loose bodies, which it meets."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    add_boxes(builder, 4)
    bars = da.models.four_bar()
    for body in bars.bodies:
        parent = "world" if body.parent < 0 else bars.bodies[body.parent].name
        bar = da.shapes.Sphere(0.05)
        builder.add_body(
            body.name, parent, body.joint, placement=body.placement, inertia=body.inertia, shapes=[bar]
        )
    for loop in bars.loops:
        ends = ["world" if k < 0 else bars.bodies[k].name for k in (loop.predecessor, loop.successor)]
        places = loop.placement_predecessor, loop.placement_successor
        builder.add_loop(loop.name, *ends, loop.joint, *places)
    add_boxes(builder, 3, name="more")
    return builder.build().with_ground(friction=0.5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_a_linkage_among_rows_stays_closed(monkeypatch: pytest.MonkeyPatch, law: str) -> None:
    def run(model: da.Model) -> Any:
        assert alike_trees.alike_trees(model) is None or alike_trees.MIN_ALIKE_VARIABLES == 1
        q, v = pile(model)
        q, v = da.constraints.close_loops(model, q, v)
        return da.rollout(
            model, q, v, steps=25, dt=DT, contact=law, observe=["constraint_error"], record_contacts=False
        )

    one, other = both(monkeypatch, linkage, run)
    check_alike(one, other)
    open_by, wanted = (np.abs(motion.observed["constraint_error"]).max() for motion in (one, other))
    assert open_by == pytest.approx(wanted, rel=1e-6)
    assert np.abs(one.q[-1, 28:32] - one.q[0, 28:32]).max() > 0.1  # the linkage moves


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_momentum_of_a_moving_pile_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without weight and ground, bodies of different masses collide: the momentum of all stays, and energy
    falls."""
    monkeypatch.setattr(alike_trees, "MIN_ALIKE_VARIABLES", 1)
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    add_boxes(builder, 9)
    model = builder.build()
    q, v = pile(model)
    for joint in model.joints:  # towards the middle
        own = q[joint.q_slice]
        turned = da.forward_kinematics(model, q).rotation[model.bodies[joint.name].index]
        v[joint.v_slice][3:] = turned.T @ (2.0 * (np.array([0.0, 0.0, 0.7]) - own[:3]))
    motion = da.rollout(model, q, v, steps=200, dt=0.002, contact="rigid", observe=["momentum", "energy"])
    momentum, energy = motion.observed["momentum"], motion.observed["energy"]
    scale = np.abs(momentum).max()
    np.testing.assert_allclose(momentum[-1][3:], momentum[0][3:], rtol=0.0, atol=1e-11 * scale)
    assert energy[-1] < 0.9 * energy[0]
    assert (np.diff(energy) < 1e-6 * energy[0]).all()


def test_a_thread_of_a_gpu_takes_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text that becomes PTX gives on this machine what code for the CPU gives; and PTX assembles."""
    monkeypatch.setattr(alike_trees, "MIN_ALIKE_VARIABLES", 1)
    model, samples = loose(), 3
    plan = StepPlan.of(model, da.contact.Rigid(), None, None, None, record=True)
    program = rollout_kernel(plan, (), ())._kernels.lower().program
    given = {item.name: np.zeros((samples, *item.shape)) for item in plan.arguments}
    for name, value in plan.initial.items():
        given[name][:] = value
    starts = [pile(model, seed) for seed in range(samples)]
    given["q"][:], given["v"][:], given["dt"][:] = (*map(np.array, zip(*starts, strict=True)), DT)
    arrays = {name: value.reshape(samples, -1) for name, value in given.items()}
    wanted = run(compile_program(program, lanes=1), arrays)
    found, _ = run_on_host(program, arrays, layout=LAYOUTS["no shared memory"])
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=0.0, atol=1e-13 * max(np.abs(value).max(), 1.0))
    assert np.abs(wanted["result output0"] - arrays["q"]).max() > 1e-4
    assert ".entry dalembert_kernel" in ptx_of(source_of(program, 64, LAYOUTS["no shared memory"]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sensors_of_alike_robots_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poses, accelerations, wrenches and contact forces of one robot among rows, in a simulation that is
    pushed and begun anew."""
    names = ["crawler1 trunk", "crawler2 left shin"]
    pressed = ContactForce(["box0", "box1", "crawler0 trunk"])
    sensors = [Imu(names[0]), FramePose(names[1]), pressed, JointWrench("crawler1 left thigh")]

    def run(model: da.Model) -> dict[str, np.ndarray]:
        q, v = pile(model)
        simulation = da.Simulation(model, q, v, contact="rigid", sensors=sensors, dt=DT)
        simulation.step(steps=2 * STEPS)
        return {name: np.array(value) for name, value in simulation.sensors.items()}

    one, other = both(monkeypatch, crawlers, run)
    for name, value in other.items():
        assert np.abs(value).max() > 0.1, name
        np.testing.assert_allclose(one[name], value, rtol=0.0, atol=1e-8 * np.abs(value).max(), err_msg=name)
