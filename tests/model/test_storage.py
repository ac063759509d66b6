"""Models as text: lossless, strict, bounded."""

from __future__ import annotations

import contextlib
import json
import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalembert import models
from dalembert.errors import DalembertError, ModelError, UnknownNameError
from dalembert.model import Limits, Model, ModelBuilder, storage
from dalembert.model import storage as reader
from dalembert.model.joints import Composite, Reversed, Revolute, Spherical, Universal
from dalembert.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Plane, Sphere
from dalembert.models import random_tree
from dalembert.models.random_trees import random_inertia, random_placement
from dalembert.spatial import RigidInertia, ScrewChain, Transform, leaves, scrx, scrz


def bits(value: Any) -> list[bytes]:
    return [struct.pack("<d", x) for x in leaves(value)]


def everything() -> Model:
    """One model with all that a model can hold."""
    rng = np.random.default_rng(5)
    shapes = [
        Box((0.1, 0.2, 0.3), placement=random_placement(rng), rgba=(0.1, 0.2, 0.3, 0.4), name="box"),
        Sphere(0.1, visual=False),
        Capsule(0.1, 0.2, friction=(0.5, 0.0, 0.0)),
        Cylinder(0.1, 0.2, restitution=0.5),
        Ellipsoid((0.1, 0.2, 0.3), collision=False),
        Plane(),
        Mesh("meshes/part.stl", (1.0, -1.0, 0.001)),
    ]
    builder = ModelBuilder(gravity=(0.1, -0.0, -9.81), name="everything ü")
    nested = Composite((Revolute((1, 2, 3)), Reversed(Revolute((0, 1, 1)))), (random_placement(rng),) * 2)
    builder.add_body(
        "a", "world", nested, placement=random_placement(rng), inertia=random_inertia(rng), shapes=shapes
    )
    builder.add_body("b", "a", Spherical(), placement=scrx(0.3, 0.1), inertia=random_inertia(rng))
    builder.add_body(
        "c",
        "b",
        Revolute(rng.standard_normal(3)),
        "joint c",
        placement=ScrewChain((scrx(0.1, 0.2), scrz(-0.3, 0.4))),
        inertia=random_inertia(rng),
        limits=Limits(-0.1, math.inf, 3.3, 4.4),
        damping=0.1,
        armature=1e-300,
        friction=1 / 3,
        stiffness=2.0,
        rest=-0.1,
    )
    builder.add_body("d", "c", Revolute(), inertia=random_inertia(rng))
    builder.add_body("e", "a", Revolute(), inertia=random_inertia(rng))
    builder.add_frame("tool", "d", random_placement(rng))
    builder.add_frame("mark", "world", random_placement(rng))
    builder.add_loop("loop", "d", "world", Spherical(), random_placement(rng), random_placement(rng))
    builder.add_coupling("gear", {"joint c": 1.0, "d": -3.0, "e": 0.1}, offset=0.7, dependent="d")
    builder.set_actuated(["joint c"])
    builder.warn("a warning")
    return builder.build()


@pytest.mark.parametrize(
    "make", [everything, models.humanoid, models.four_bar, lambda: random_tree(1, bodies=40)]
)
def test_text_restores_every_bit(make: Any) -> None:
    """RBDA-4.6-MODEL: save and load round trip."""
    model = make()
    restored = Model.from_json(model.to_json())
    assert restored == model
    assert restored.digest == model.digest
    assert restored.report == model.report
    for a, b in zip(model.bodies, restored.bodies, strict=True):
        assert bits(a.inertia) == bits(b.inertia)
        assert bits(a.placement) == bits(b.placement)
        assert type(a.placement) is type(b.placement)
        assert bits(a.joint.parameters()) == bits(b.joint.parameters())
        assert (a.limits, a.shapes, a.rest, a.dependence) == (b.limits, b.shapes, b.rest, b.dependence)
        assert (a.armature, a.damping, a.friction, a.stiffness) == (
            b.armature,
            b.damping,
            b.friction,
            b.stiffness,
        )
    assert [f.placement for f in model.frames] == [f.placement for f in restored.frames]
    assert list(model.couplings) == list(restored.couplings)
    assert restored.actuated == model.actuated
    assert restored.to_json() == model.to_json()


def test_axes_of_unit_length_keep_their_last_bit() -> None:
    """RBDA-4.6-MODEL: normalising once more may change it."""
    axis = [0.1918241767505651, 0.9652056124856099, 0.17771215726631345]
    once = Revolute().with_parameters(axis)
    for joint in (
        once,
        Reversed(once),
        Composite((once, Reversed(once))),
        Universal().with_parameters([*axis, 1, 0, 0]),
    ):
        builder = ModelBuilder()
        builder.add_body("a", "world", joint, inertia=random_inertia(1))
        builder.add_loop("l", "a", "world", joint)
        model = builder.build()
        assert Model.from_json(model.to_json()) == model


def test_axes_of_other_lengths_are_normalised() -> None:
    text = models.pendulum().to_json().replace("[0.0, 1.0, 0.0]}", "[0.0, 3.0, 4.0]}")
    assert Model.from_json(text).value("pivot.axis").tolist() == [0.0, 0.6, 0.8]


def test_the_text_is_strict_json() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    content = json.loads(everything().to_json(), parse_constant=refuse)
    assert content["format"] == "dalembert-model"
    assert content["bodies"][2]["limits"]["upper"] == ["inf"]


@given(
    numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=10, max_size=10),
    offset=st.floats(allow_nan=False, allow_infinity=False),
)
@settings(max_examples=60, deadline=None)
def test_any_finite_float_survives(numbers: list[float], offset: float) -> None:
    """RBDA-4.6-MODEL: also denormals, negative zeros and the largest floats."""
    from dalembert.spatial import SymMat3, Vec3

    mass, x, y, z, *moments = numbers
    builder = ModelBuilder(gravity=(x, y, z))
    inertia = RigidInertia.from_compact(mass, Vec3(x, y, z), SymMat3(*moments))
    builder.add_body("a", "world", Revolute(), placement=scrx(0.1, offset), inertia=inertia, rest=offset)
    content = storage._content(builder_model(builder))
    restored = json.loads(json.dumps(content))
    assert bits(restored["bodies"][0]["inertia"]) == bits(inertia)
    assert bits(restored["bodies"][0]["rest"]) == bits([offset])


def builder_model(builder: ModelBuilder) -> Model:
    """The model without a look at its inertia, which may overflow here."""
    from dalembert.model.coupling import place_coordinates

    bodies = [body for _, body in builder._bodies.values()]
    return Model(bodies=place_coordinates(bodies), gravity=builder._gravity)


def edited(**changes: Any) -> str:
    content = json.loads(everything().to_json())
    for path, value in changes.items():
        *way, last = [int(part) if part.isdigit() else part for part in path.split("__")]
        inner = content
        for part in way:
            inner = inner[part]
        if value is ...:
            del inner[last]
        else:
            inner[last] = value
    return json.dumps(content)


BAD = [
    ("", ModelError, "not a saved model"),
    ("[1, 2]", ModelError, r"model must be an object, got \[1, 2\]"),
    ("{", ModelError, "not a saved model"),
    (b"\xff\xfe\x00", ModelError, "not a saved model"),
    ('{"format": "dalembert-model", "format": 1}', ModelError, "occurs twice"),
    ("[" * 100_000, ModelError, "not a saved model|nested too deeply"),
    ('{"format": "dalembert-model", "version": ' + "9" * 5000 + "}", ModelError, "not a saved model"),
    (edited(format="urdf"), ModelError, "\"format\" is 'urdf', this version reads 'dalembert-model'"),
    (edited(version=2), ModelError, '"version" is 2, this version reads 1'),
    (edited(version=True), ModelError, '"version" is True'),
    (edited(gravity=[1, 2]), ModelError, '"gravity" has 2 numbers, 3 expected'),
    (edited(gravity=[1, 2, "inf"]), ModelError, "three finite numbers"),
    (edited(gravity=[1, 2, True]), ModelError, '"gravity" must hold numbers, got True'),
    (edited(gravity=[1, 2, 10**400]), ModelError, "beyond the range of floats"),
    (edited(gravity=...), ModelError, 'model has no "gravity"'),
    (edited(bodies={}), ModelError, '"bodies" must be a list'),
    (edited(bodies=[]), ModelError, "no bodies"),
    (edited(extra=1), ModelError, r"unknown entries \['extra'\]"),
    (edited(bodies__0__extra=1), ModelError, r"model.bodies\[0\] has unknown entries \['extra'\]"),
    (edited(bodies__1__name=3), ModelError, r'model.bodies\[1\]: "name" must be text'),
    (edited(bodies__1__parent="nobody"), UnknownNameError, 'body "b": unknown body "nobody"'),
    (edited(bodies__1__joint={"type": "os.system"}), ModelError, 'unknown joint type "os.system"'),
    (edited(bodies__1__joint={"type": "spherical", "x": 1}), ModelError, "do not fit it"),
    (edited(bodies__1__joint=[]), ModelError, "dictionary"),
    (edited(bodies__2__joint__axis=[0, 0, 0]), ModelError, "axis is zero"),
    (edited(bodies__2__joint__axis="abc"), ModelError, r'model.bodies\[2\]: "joint"'),
    (edited(bodies__0__inertia=[1.0] * 9), ModelError, '"inertia" has 9 numbers, 10 expected'),
    (edited(bodies__0__placement__rotation=[2.0] * 9), ModelError, "not a rotation"),
    (edited(bodies__1__placement__axis=7), ModelError, '"axis" is 7; 0, 1 or 2 expected'),
    (edited(bodies__0__shapes__0__type="blob"), UnknownNameError, 'unknown shape "blob"'),
    (edited(bodies__0__shapes__1__radius=-1), ModelError, r"shapes\[1\]: sphere: radius is -1"),
    (edited(bodies__0__shapes__1__evil=1), ModelError, r"shapes\[1\]"),
    (edited(couplings__0__coefficients=[1.0]), ModelError, '"coefficients" has 1 numbers, 3 expected'),
    (edited(bodies__2__limits__lower=["nan"]), ModelError, "must hold numbers, got 'nan'"),
]


@pytest.mark.parametrize(("text", "kind", "message"), BAD, ids=range(len(BAD)))
def test_bad_text_is_refused(text: Any, kind: type[DalembertError], message: str) -> None:
    """RBDA-4.6-MODEL: validation errors."""
    with pytest.raises(kind, match=message):
        Model.from_json(text)


def test_nan_is_no_json() -> None:
    with pytest.raises(ModelError, match="NaN is not a JSON number"):
        Model.from_json(models.pendulum().to_json().replace("-9.81", "NaN"))


def test_long_text_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_TEXT_BYTES", 100)
    with pytest.raises(ModelError, match="100 at most"):
        Model.from_json(models.pendulum().to_json())


@given(st.binary(max_size=300))
@settings(max_examples=80, deadline=None)
def test_random_bytes_raise_our_own_error(data: bytes) -> None:
    with pytest.raises(DalembertError):
        Model.from_json(data)


@given(position=st.floats(0.0, 1.0), byte=st.integers(32, 126))
@settings(max_examples=150, deadline=None)
def test_a_damaged_text_loads_or_raises_our_own_error(position: float, byte: int) -> None:
    text = models.slider_crank().to_json()
    i = int(position * (len(text) - 1))
    with contextlib.suppress(DalembertError):
        Model.from_json(text[:i] + chr(byte) + text[i + 1 :])


def test_traced_models_can_be_neither_saved_nor_compared() -> None:
    from dalembert.model import replace_values

    model = replace_values(models.pendulum(), {"bob.mass": np.ones(3)})
    with pytest.raises(ModelError, match='"bob" holds a ndarray where a number belongs'):
        model.digest
    with pytest.raises(ModelError, match="neither saved nor compared"):
        model.to_json()


def test_identity_placement_is_restored_as_such() -> None:
    assert Model.from_json(models.pendulum().to_json()).bodies[0].placement == Transform.identity()
