"""What may touch, in MJCF files, against MuJoCo: its own contacts when every geom is felt from afar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import FileError
from dalembert.formats.mjcf import load_mjcf
from dalembert.formats.mjcf.mjcf_writer import mjcf_text
from dalembert.model.shapes import Box, ConvexMesh, HeightField, Plane, Shape, Sphere
from dalembert.model.values import rebuilt
from dalembert.spatial import RigidInertia, Vec3

mujoco = pytest.importorskip("mujoco")

FELT = 50.0
"""The margin at which every pair that may touch is a contact [m]."""


def write(folder: Path, bodies: str, rest: str = "", head: str = "") -> Path:
    file = folder / "model.xml"
    file.write_text(f'<mujoco model="made">{head}<worldbody>{bodies}</worldbody>{rest}</mujoco>')
    return file


def placed_shapes(model: da.Model) -> list[tuple[str, Shape]]:
    return [("world", shape) for shape in model.world_shapes] + [
        (body.name, shape) for body in model.bodies for shape in body.shapes
    ]


def may_touch(model: da.Model) -> set[frozenset[str]]:
    """Pairs of names of shapes, by masks, bodies, exclusions and explicit pairs."""
    parents = {b.name: "" if b.parent < 0 else model.bodies[b.parent].name for b in model.bodies}
    excluded = {frozenset(pair) for pair in model.contact_exclusions}
    found = set()
    for (a, first), (b, second) in combinations(placed_shapes(model), 2):
        masks = first.group & second.collides_with or second.group & first.collides_with
        links = frozenset((first.link or a, second.link or b))
        apart = a != b and parents.get(a) != b and parents.get(b) != a and links not in excluded
        if masks and apart and first.collision and second.collision:
            found.add(frozenset((first.name, second.name)))
    return found | {frozenset((pair.first, pair.second)) for pair in model.contact_pairs}


def touching(m: Any, qpos: Any = None) -> set[frozenset[str]]:
    """The pairs of geoms for which MuJoCo finds contacts if all are felt from afar."""
    m.geom_margin[:] = FELT
    m.pair_margin[:] = FELT
    m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
    m.opt.enableflags = 0
    m.geom_rbound[m.geom_rbound > 0] = FELT
    data = mujoco.MjData(m)
    data.qpos[:] = m.qpos0 if qpos is None else qpos
    mujoco.mj_kinematics(m, data)
    mujoco.mj_comPos(m, data)
    mujoco.mj_collision(m, data)
    names = [mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_GEOM, g) for g in range(m.ngeom)]
    return {frozenset((names[contact.geom1], names[contact.geom2])) for contact in data.contact}


def _saved(model: da.Model, path: Path) -> Path:
    da.save(model, path)
    return path


FIGURES = ("humanoid", "humanoid_CMU", "walker", "hopper", "quadruped", "stacker", "manipulator")


@pytest.mark.parametrize("name", FIGURES)
def test_the_pairs_that_may_touch_are_those_of_mujoco(name: str, tmp_path: Path) -> None:
    """Of released figures, with masks, exclusions, stacks of joints and merged bodies."""
    package = find_spec("dm_control")
    if package is None or not package.submodule_search_locations:
        pytest.skip("dm_control is not installed")
    file = Path(package.submodule_search_locations[0]) / "suite" / f"{name}.xml"
    spec = mujoco.MjSpec.from_file(str(file))
    spec.option.density = spec.option.viscosity = 0.0
    for k, geom in enumerate(spec.geoms):
        geom.name = geom.name or f"geom {k}"
    m = spec.compile()
    path = tmp_path / "named.xml"
    path.write_text(spec.to_xml())
    model = load_mjcf(path, roots=[file.parent], trusted=True)
    found = touching(m)
    assert len(found) > 3
    assert may_touch(model) == found


SCENE = """
<geom name="floor" type="plane" size="1 1 1" pos="0 0 -1" euler="10 0 20" friction=".5 .1 .01"/>
<geom name="ramp" type="box" size="1 .5 .1" pos="3 0 0" euler="0 30 0" contype="-1" conaffinity="6"/>
<geom name="land" type="hfield" hfield="h" pos=".3 .2 .1" euler="0 0 30"/>
<geom name="rock" type="mesh" mesh="rock" pos=".1 .2 .3" euler="10 20 30"/>
<body name="post" pos="2 2 0" euler="0 0 45">
  <geom name="post" type="cylinder" size=".1 1" pos=".1 0 0"/></body>
<body name="trunk" pos="0 0 2"><freejoint/>
  <geom name="trunk" type="box" size=".1 .2 .3" condim="1"/>
  <body name="pack" pos="0 0 .5"><geom name="pack" size=".1" contype="2" conaffinity="3"/></body>
  <body name="thigh" pos=".2 0 0"><joint axis="1 0 0"/><joint axis="0 1 0"/>
    <geom name="thigh" type="capsule" size=".05 .2"/>
    <body name="shin" pos="0 0 -.4"><joint axis="0 1 0"/><geom name="shin" type="capsule" size=".04 .2"/>
      <body name="foot" pos="0 0 -.3"><joint axis="0 1 0"/>
        <geom name="foot" type="ellipsoid" size=".1 .05 .03" contype="0" conaffinity="0"/>
        <geom name="toe" size=".03" contype="0" conaffinity="0"/></body>
    </body>
  </body>
</body>"""
ASSETS = """<asset>
  <hfield name="h" nrow="3" ncol="4" size="2 1.5 .7 .1" elevation="0 1 2 0  3 1 5 2  1 1 0 4"/>
  <mesh name="rock" vertex="0 0 0  1 0 0  0 2 0  0 0 1.5  .2 .2 .2"/></asset>"""
RULES = """<contact><exclude body1="shin" body2="trunk"/><exclude body1="world" body2="shin"/>
  <pair geom1="foot" geom2="floor" friction=".3 .3 .02 .001 .001"/>
  <pair geom1="thigh" geom2="trunk" friction=".3 .4" condim="3"/>
  <pair geom1="post" geom2="foot" condim="1"/></contact>"""


def test_geoms_of_the_world_stand_where_mujoco_has_them(tmp_path: Path) -> None:
    """Placements, sizes, masks and friction of everything that stands still."""
    path = write(tmp_path, SCENE, RULES, ASSETS)
    model = load_mjcf(path)
    m = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(m)
    mujoco.mj_kinematics(m, data)
    shapes = {shape.name: shape for shape in model.world_shapes}
    assert [*shapes] == ["floor", "ramp", "land", "rock", "post"]
    for name, shape in shapes.items():
        g = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_GEOM, name)
        X = np.array(shape.placement.homogeneous())
        np.testing.assert_allclose(X[:3, 3], data.geom_xpos[g], atol=1e-12)
        np.testing.assert_allclose(X[:3, :3].ravel(), data.geom_xmat[g], atol=1e-12)
        np.testing.assert_array_equal(shape.friction, m.geom_friction[g])
        masks = np.array([shape.group, shape.collides_with], dtype=np.uint32).astype(np.int32)
        np.testing.assert_array_equal(masks, [m.geom_contype[g], m.geom_conaffinity[g]])
    assert [type(shape) for shape in shapes.values()][:2] == [Plane, Box]
    assert shapes["ramp"].group == 2**32 - 1
    assert model.body("trunk").shapes[0].condim == 1
    assert not model.bodies.has("post")
    assert model.frame("post").body == -1


def test_masks_exclusions_and_pairs_are_those_of_mujoco(tmp_path: Path) -> None:
    path = write(tmp_path, SCENE, RULES, ASSETS)
    model = load_mjcf(path)
    merged = {frozenset(("post", "shin")), frozenset(("pack", "shin"))}  # which the exclusions do not mean
    found = touching(mujoco.MjModel.from_xml_path(str(path)))
    assert merged < found
    assert may_touch(model) == found
    excluded = (("trunk", "thigh"), ("pack", "thigh"), ("world", "shin"), ("trunk", "shin"))
    assert model.contact_exclusions == excluded
    assert da.load(_saved(model, tmp_path / "a.json")) == model
    pairs = {frozenset((pair.first, pair.second)): pair.friction for pair in model.contact_pairs}
    assert pairs == {
        frozenset(("foot", "floor")): (0.3, 0.02, 0.001),
        frozenset(("thigh", "trunk")): (0.3, 0.4, 0.005, 0.0001),
        frozenset(("post", "foot")): (0.0, 0.0, 0.0),
    }
    foot, toe = model.body("foot").shapes
    assert foot.collision  # the masks are empty, a pair names it
    assert not toe.collision
    text = "\n".join(model.report)
    assert "rolling friction is the same" not in text
    assert "contact pairs" not in text


@pytest.mark.parametrize("seed", range(2))
def test_height_fields_have_the_surface_of_mujoco(seed: int, tmp_path: Path) -> None:
    """Rays from above, which tell one diagonal of a cell from the other."""
    path = write(tmp_path, SCENE, "", ASSETS)
    m = mujoco.MjModel.from_xml_path(str(path))
    g = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_GEOM, "land")
    m.geom_group[:] = 1
    m.geom_group[g] = 2
    only = np.array([0, 0, 1, 0, 0, 0], dtype=np.uint8)
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    (land,) = (shape for shape in load_mjcf(path).world_shapes if isinstance(shape, HeightField))
    assert land.size == (4.0, 3.0)
    assert np.shape(land.heights) == (3, 4)
    rng = np.random.default_rng(seed)
    hit = np.zeros(1, dtype=np.int32)
    for _ in range(200):
        x, y = rng.uniform(-0.5, 0.5, 2) * land.size
        above = land.placement.as_transform().transform_point(Vec3(x, y, 5.0))
        distance = mujoco.mj_ray(m, data, list(above), [0.0, 0.0, -1.0], only, 1, -1, hit)
        assert hit[0] == g
        assert 5.0 - distance == pytest.approx(land.height_at(x, y), abs=1e-6)


def test_a_mesh_in_no_file_is_its_hull(tmp_path: Path) -> None:
    path = write(tmp_path, SCENE, "", ASSETS)
    (rock,) = (shape for shape in load_mjcf(path).world_shapes if isinstance(shape, ConvexMesh))
    assert len(rock.vertices) == 4
    assert rock.volume == pytest.approx(0.5, rel=1e-5)
    m = mujoco.MjModel.from_xml_path(str(path))
    given = mujoco.MjData(m)
    mujoco.mj_kinematics(m, given)
    R, p = np.zeros(9), np.array([0.1, 0.2, 0.3])
    spec = mujoco.MjSpec.from_file(str(path))
    quaternion = np.zeros(4)
    mujoco.mju_euler2Quat(quaternion, np.radians([10.0, 20.0, 30.0]), "xyz")
    mujoco.mju_quat2Mat(R, quaternion)
    assert spec.meshes
    corners = [(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 1.5)]
    expected = sorted(tuple(np.round(p + R.reshape(3, 3) @ c, 5)) for c in corners)
    X = rock.placement.as_transform()
    found = sorted(tuple(np.round(list(X.transform_point(Vec3(*v))), 5)) for v in rock.vertices)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_flags_of_contact(tmp_path: Path) -> None:
    off = load_mjcf(write(tmp_path, SCENE, RULES, ASSETS + '<option><flag contact="disable"/></option>'))
    assert not any(shape.collision for _, shape in placed_shapes(off))
    assert "the file switches contact off: no shape collides" in off.report
    text = load_mjcf(write(tmp_path, SCENE, "", ASSETS + '<option><flag filterparent="disable"/></option>'))
    assert any("filterparent" in line for line in text.report)
    ranked = load_mjcf(write(tmp_path, SCENE.replace('condim="1"', 'priority="1"'), "", ASSETS))
    assert any("priorities of geoms" in line for line in ranked.report)


@pytest.mark.parametrize("floor", [1, 3, 4, 6])
@pytest.mark.parametrize("ball", [1, 3, 4, 6])
def test_condim_and_friction_of_a_contact_are_those_of_mujoco(ball: int, floor: int, tmp_path: Path) -> None:
    """The larger condim and the larger coefficients of both geoms hold, also of one with a smaller condim."""
    text = f"""<geom type="plane" size="1 1 1" condim="{floor}" friction=".3 .2 .001"/>
      <body pos="0 0 .09"><freejoint/><geom size=".1" condim="{ball}" friction=".5 .1 .01"/></body>"""
    path = write(tmp_path, text)
    m = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    (theirs,) = data.contact
    for model in (load_mjcf(path), load_mjcf(_saved(load_mjcf(path), tmp_path / "again.xml"))):
        (ours,) = da.contact.pairs_of(model)
        acting = [0.0 if theirs.dim <= k else theirs.friction[j] for k, j in ((1, 0), (3, 2), (4, 3))]
        assert [ours.friction, ours.torsion, ours.rolling] == pytest.approx(acting)


@pytest.mark.parametrize("condim", [3, 6])
def test_pairs_have_the_friction_of_both_directions(condim: int, tmp_path: Path) -> None:
    """MuJoCo's five numbers; rolling friction is the larger of two, which the report says."""
    text = """<geom name="floor" type="plane" size="1 1 1"/>
      <body pos="0 0 .09"><freejoint/><geom name="ball" size=".1"/></body>"""
    rule = f'<pair geom1="floor" geom2="ball" condim="{condim}" friction=".3 .7 .02 .001 .003"/>'
    model = load_mjcf(write(tmp_path, text, f"<contact>{rule}</contact>"))
    (pair,) = da.contact.pairs_of(model)
    turning = (0.02, 0.003) if condim == 6 else (0.0, 0.0)
    assert (pair.friction, pair.across, pair.torsion, pair.rolling) == (0.3, 0.7, *turning)
    assert sum("rolling friction is the same" in line for line in model.report) == (condim == 6)


def test_a_file_in_which_nothing_moves_is_a_scene(tmp_path: Path) -> None:
    for text in ('<geom size="1"/>', '<body><geom size="1"/></body>'):
        scene = load_mjcf(write(tmp_path, text))
        assert scene.nv == 0
        assert [shape.kind for shape in scene.world_shapes] == ["sphere"]
    assert load_mjcf(write(tmp_path, '<body><geom size="1"/></body>'), root="floating").nv == 6
    with pytest.raises(FileError, match="no body in the file"):
        load_mjcf(write(tmp_path, ""))


def test_written_files_touch_as_the_model_does(tmp_path: Path) -> None:
    """The text of a loaded scene, compiled by MuJoCo again."""
    path = write(tmp_path, SCENE, RULES, ASSETS)
    model = load_mjcf(path)
    text, losses = mjcf_text(model)
    assert losses == []
    m = mujoco.MjModel.from_xml_string(text)
    assert touching(m, mujoco.MjModel.from_xml_path(str(path)).qpos0) == may_touch(model)
    (tmp_path / "again.xml").write_text(text)
    again = load_mjcf(tmp_path / "again.xml")
    assert again.contact_pairs == model.contact_pairs
    assert {frozenset(pair) for pair in again.contact_exclusions} == {
        frozenset(pair) for pair in model.contact_exclusions
    }
    assert mujoco.MjModel.from_xml_string(text).ngeom == len(placed_shapes(model))
    for (_, ours), (_, theirs) in zip(placed_shapes(model), placed_shapes(again), strict=True):
        assert (ours.name, ours.kind, ours.friction) == (theirs.name, theirs.kind, theirs.friction)
        assert (ours.collision, ours.visual) == (theirs.collision, theirs.visual)
        if ours.collision:
            assert (ours.group, ours.collides_with) == (theirs.group, theirs.collides_with)
        if not isinstance(ours, (ConvexMesh, HeightField)):
            np.testing.assert_allclose(
                np.array(theirs.placement.homogeneous()), np.array(ours.placement.homogeneous()), atol=1e-12
            )
    land, same = (
        next(shape for shape in item.world_shapes if isinstance(shape, HeightField))
        for item in (model, again)
    )
    lift = float(same.placement.p.z) - float(land.placement.p.z)
    np.testing.assert_allclose(np.array(same.heights) + lift, land.heights, atol=1e-6)


def test_what_mjcf_has_no_words_for_is_lost_or_refused() -> None:
    builder = da.ModelBuilder()
    inertia = RigidInertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    builder.add_body(
        "a", "world", da.Free(), inertia=inertia, shapes=[Sphere(0.1, name="s"), Plane(name="p")]
    )
    builder.add_shape("world", Box((1.0, 1.0, 1.0), name="b", restitution=0.5))
    builder.add_contact_pair("s", "b", restitution=0.5)
    builder.add_contact_pair("p", "b")
    losses = mjcf_text(builder.build())[1]
    assert len(losses) == 4
    assert 'contact pair of "s" and "b": restitution is left out' in losses
    assert 'contact pair of "p" and "b" is left out with a shape' in losses
    builder.add_shape("world", HeightField(np.random.default_rng(1).normal(size=(500, 500)).tolist(), (1, 1)))
    with pytest.raises(FileError, match="height field has more numbers"):
        mjcf_text(builder.build())


BUNDLED = (
    da.models.arm6, da.models.arm7, da.models.cart_pole, da.models.double_pendulum, da.models.five_bar,
    da.models.four_bar, da.models.humanoid, da.models.ladder, da.models.pendulum, da.models.quadruped,
    da.models.slider_crank, da.models.stewart, da.models.two_link_arm,
)  # fmt: skip


@pytest.mark.parametrize("make", BUNDLED, ids=lambda make: make.__name__)
def test_bundled_models_do_not_touch_themselves_at_rest(make: Callable[[], da.Model]) -> None:
    """Distances by MuJoCo between all shapes that may touch, in the neutral pose."""
    model = make()
    bodies = [
        replace(body, shapes=tuple(replace(s, name=f"{body.name} {k}") for k, s in enumerate(body.shapes)))
        for body in model.bodies
    ]
    model = rebuilt(model, bodies=bodies)
    m = mujoco.MjModel.from_xml_string(mjcf_text(model.tree())[0])
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    for pair in may_touch(model):
        g, h = (mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_GEOM, name) for name in pair)
        assert mujoco.mj_geomDistance(m, data, g, h, 1.0, None) > 0.0, pair
    on_ground = may_touch(model.with_ground())
    assert {name for pair in on_ground for name in pair if "ground" in pair} - {"ground"} == {
        shape.name for body in bodies for shape in body.shapes if shape.collision
    }
