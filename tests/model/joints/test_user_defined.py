"""Joints given by functions, and joints driven by time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.model.joints.catalogue import CATALOGUE, TIME, close, helix, state

from dalembert.errors import ArgumentError, ModelError
from dalembert.model.joints import (
    Cylindrical,
    Fixed,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    SphericalExponential,
    TimeDependent,
    UserDefined,
)
from dalembert.scalar import cos, select, sin
from dalembert.spatial import Mat3, Motion, Transform, Vec3


def test_a_users_helix_is_the_helical_joint() -> None:
    """RBDA-4.4-USERJOINT: from its placement alone, the same X, S, v_J, c_J, and an equivalent T."""
    mine, library = helix(0.3), Helical((0, 0, 1), 0.3)
    q, v = [0.8], [-1.3]
    X, S, v_J, c_J = mine.jcalc(q, v)
    expected = library.jcalc(q, v)
    close(X.motion_matrix(), expected.X_J.motion_matrix())
    close(S[0].to_list(), expected.S[0].to_list())
    close(v_J.to_list(), expected.v_J.to_list())
    close(c_J.to_list(), np.zeros(6))
    T = np.array([force.to_list() for force in mine.constraint_subspace(q)])
    known = np.array([force.to_list() for force in library.constraint_subspace(q)])
    assert np.linalg.matrix_rank(np.vstack([T, known]), tol=1e-9) == 5


@pytest.mark.parametrize(
    "name", [n for n, j in CATALOGUE.items() if not j.time_dependent and not n.startswith("user")]
)
def test_every_joint_can_be_derived_from_its_placement(name: str) -> None:
    """RBDA-4.4-USERJOINT: dual numbers give S, v_J and c_J of any joint of the library."""
    joint = CATALOGUE[name]
    if joint.nv == 0:
        return
    derived = UserDefined(
        "derived", joint.nq, joint.nv, joint.transform,
        position_rate=joint.position_rate, integrate=joint.integrate, difference=joint.difference,
    )  # fmt: skip
    q, v = state(joint, 1)
    close(derived.velocity(q, v).to_list(), joint.velocity(q, v).to_list(), 1e-11)
    close(derived.bias(q, v).to_list(), joint.bias(q, v).to_list(), 1e-10)
    for mine, theirs in zip(derived.subspace(q), joint.subspace(q)):
        close(mine.to_list(), theirs.to_list(), 1e-11)


def test_given_formulas_are_used() -> None:
    """RBDA-4.4-USERJOINT: subspace, bias, normalize, position_of … replace what would be derived."""
    marked = UserDefined(
        "marked", 1, 1, lambda q: Transform.identity(),
        subspace=lambda q: [Motion.of([0, 0, 1, 0, 0, 0.5])],
        bias=lambda q, v: Motion.of([v[0], 0, 0, 0, 0, 0]),
        normalize=lambda q: [q[0] + 10.0],
        position_of=lambda X: [7.0],
        position_rate=lambda q, v: [2.0 * v[0]],
        integrate=lambda q, dv: [q[0] + 2.0 * dv[0]],
        difference=lambda a, b: [0.5 * (b[0] - a[0])],
        neutral=[0.25], coordinates=["length"],
    )  # fmt: skip
    assert marked.velocity([0.0], [2.0]).to_list() == [0.0, 0.0, 2.0, 0.0, 0.0, 1.0]
    assert marked.bias([0.0], [3.0]).angular.x == 3.0
    assert marked.normalize([1.0]) == [11.0]
    assert marked.position_of(Transform.identity()) == [7.0]
    assert marked.position_rate([0.0], [1.5]) == [3.0]
    assert marked.integrate([1.0], marked.difference([1.0], [4.0])) == [4.0]
    assert marked.neutral() == [0.25]
    assert marked.coordinates == ("length",)


def test_a_users_joint_closes_a_loop_once_it_tells_its_position() -> None:
    """RBDA-4.4-USERJOINT RBDA-8.3-DELTA: delta = T^T d near the manifold, as for the library's helix."""
    library = Helical((0, 0, 1), 0.3)
    mine = UserDefined("helix", 1, 1, library.transform, position_of=library.position_of)
    moved = Transform(library.transform([1.7]).R, Vec3(1e-6, -2e-6, 0.3 * 1.7))
    d = library.transform([1.7]).rotate_to_child(Vec3(1e-6, -2e-6, 0.0))
    expected = [force.linear.dot(d) for force in mine.constraint_subspace([1.7])]
    close(np.array(mine.closure_error(moved)) * 1e6, np.array(expected) * 1e6, 1e-5)


def test_the_bias_follows_a_given_subspace() -> None:
    """RBDA-4.4-USERJOINT: c_J of a joint with S by formula is the derivative of that formula."""
    exponential = SphericalExponential()
    mine = UserDefined("mine", 3, 3, exponential.transform, subspace=exponential.subspace)
    q, v = state(exponential, 2)
    close(mine.bias(q, v).to_list(), exponential.bias(q, v).to_list(), 1e-12)
    close(mine.bias([0.0] * 3, v).to_list(), np.zeros(6))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"nq": 2, "nv": 1}, "differs from nv"),
        ({"nq": 7, "nv": 7}, "0 to 6"),
        ({"nq": 1, "nv": 2}, "at least as many"),
        ({"nq": 1, "nv": 1, "integrate": lambda q, dv: q}, "all three or none"),
        ({"nq": 1, "nv": 1, "neutral": [0.0, 0.0]}, "nq = 1"),
        ({"nq": 3, "nv": 3, "unit_quaternions": [slice(0, 4)]}, "slice of 4"),
    ],
)
def test_contradictory_definitions_are_refused(arguments, words: str) -> None:
    """RBDA-4.4-USERJOINT: each error names the joint and what would be consistent."""
    with pytest.raises(ModelError, match=words):
        UserDefined("odd", placement=lambda q: Transform.identity(), **arguments)


def test_wrong_results_are_refused() -> None:
    """RBDA-4.4-USERJOINT: a placement that is none, or a subspace of the wrong width."""
    with pytest.raises(ModelError, match="return a Transform"):
        UserDefined("odd", 1, 1, lambda q: np.eye(4)).transform([0.0])
    with pytest.raises(ModelError, match="give nv = 1"):
        UserDefined("odd", 1, 1, lambda q: Transform.identity(), subspace=lambda q: []).subspace([0.0])
    with pytest.raises(ModelError, match="give the 2 positions"):
        TimeDependent(Fixed(), Cylindrical(), lambda t: [t]).transform([], 0.5)


def test_a_prescribed_slide_leaves_a_cylinder_one_freedom() -> None:
    """RBDA-4.4-USERJOINT RBDA-3.4-CLASSES: sigma and sigma° of a cylinder that slides as A sin(w t)."""
    A, w, t = 0.4, 3.0, 0.7
    joint = TimeDependent(Revolute(), driver=Prismatic(), motion=lambda time: [A * sin(w * time)])
    assert (joint.nq, joint.nv, joint.time_dependent) == (1, 1, True)
    q, v = [0.5], [1.2]
    x, dx, ddx = A * math.sin(w * t), A * w * math.cos(w * t), -A * w * w * math.sin(w * t)
    close(joint.transform(q, t).motion_matrix(), Cylindrical().transform([q[0], x]).motion_matrix())
    close(joint.velocity(q, v, t).to_list(), [0, 0, v[0], 0, 0, dx])
    close(joint.bias(q, v, t).to_list(), [0, 0, 0, 0, 0, ddx])
    assert [column.to_list() for column in joint.subspace(q, t)] == [[0, 0, 1, 0, 0, 0]]


def test_prescribed_motion_moves_what_hangs_on_it() -> None:
    """RBDA-4.4-USERJOINT: a hinge on a platform that turns about another axis has Coriolis terms in c_J."""
    spin = TimeDependent(Revolute((0, 1, 0)), driver=Revolute((0, 0, 1)), motion=lambda time: [2.0 * time])
    q, v = [0.6], [1.5]
    # omega of the platform in the hinge's frame turns with it: c_J = (E a)° Omega = (E a x S v) Omega.
    a = Revolute((0, 1, 0)).transform(q).rotate_to_child(Vec3.unit(2))
    close(list(spin.bias(q, v, 0.3).angular), list(a.cross(Vec3(0.0, v[0], 0.0)) * 2.0))


def test_a_driver_with_a_quaternion() -> None:
    """RBDA-4.4-USERJOINT: any joint may be driven, also one whose v is not dq/dt."""
    joint = TimeDependent(
        Fixed(), driver=Spherical(), motion=lambda t: [cos(0.5 * t), 0.0, sin(0.5 * t), 0.0]
    )
    close(joint.velocity([], [], 0.8).to_list(), [0, 1, 0, 0, 0, 0])
    close(joint.bias([], [], 0.8).to_list(), np.zeros(6))


def test_given_subspace_of_a_rheonomic_joint_still_has_sigma() -> None:
    """RBDA-4.4-USERJOINT: sigma comes from the placement's dependence on time, whoever gives S."""
    wheel = CATALOGUE["user rheonomic"]
    formula = UserDefined(
        "wheel", 2, 2, dict(wheel.functions)["placement"], subspace=wheel.subspace, time_dependent=True
    )
    q, v = state(wheel, 4)
    close(formula.velocity(q, v, TIME).to_list(), wheel.velocity(q, v, TIME).to_list())
    close(formula.bias(q, v, TIME).to_list(), wheel.bias(q, v, TIME).to_list())
    with pytest.raises(ArgumentError, match="pass time="):
        formula.velocity(q, v)


def test_values_may_decide_through_select() -> None:
    """RBDA-4.4-USERJOINT: the derivative follows the branch taken, in a batch too."""

    def place(q):
        stretch = select(q[0] > 0.0, 2.0 * q[0], q[0])
        return Transform(Mat3.identity(), Vec3(stretch, 0.0, 0.0))

    joint = UserDefined("soft", 1, 1, place, coordinates=("length",))
    assert joint.subspace([0.5])[0].linear.x == 2.0
    assert joint.subspace([-0.5])[0].linear.x == 1.0
    rows = joint.subspace([np.array([0.5, -0.5])])[0].linear.x
    assert rows.tolist() == [2.0, 1.0]


def test_planar_joint_from_a_users_placement_in_its_own_rates() -> None:
    """RBDA-4.4-PLANAR-QDOT: with v = dq/dt, x and y in the predecessor, S varies and c_J is not zero."""
    rates = UserDefined("planar rates", 3, 3, Planar().transform, coordinates=("length", "length", "angle"))
    q, v = [0.5, -0.8, 0.7], [0.3, -0.6, 1.4]
    ours = Planar()
    c, s = math.cos(q[2]), math.sin(q[2])
    alpha = [v[2], c * v[0] + s * v[1], c * v[1] - s * v[0]]
    close(rates.velocity(q, v).to_list(), ours.velocity(q, alpha).to_list())
    close(list(rates.bias(q, v).linear), [v[2] * alpha[2], -v[2] * alpha[1], 0.0])
