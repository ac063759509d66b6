"""Poses and disabled pairs of the SRDF files in example-robot-data, against Pinocchio's own readers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

import dalembert as da  # noqa: E402
from dalembert.contact.pairs import pairs_of  # noqa: E402

ROBOTS = Path(pin.__file__).parents[4] / "share/example-robot-data/robots"

POSED = (
    ("a1_description/urdf/a1.urdf", "a1_description/srdf/a1.srdf"),
    ("go2_description/urdf/go2.urdf", "go2_description/srdf/go2.srdf"),
    ("talos_data/robots/talos_reduced.urdf", "talos_data/srdf/talos.srdf"),
    ("solo_description/robots/solo12.urdf", "solo_description/srdf/solo.srdf"),
    ("anymal_b_simple_description/robots/anymal.urdf", "anymal_b_simple_description/srdf/anymal.srdf"),
)


@pytest.mark.parametrize(("urdf", "srdf"), POSED)
def test_poses_are_those_of_pinocchio(urdf: str, srdf: str) -> None:
    model = da.load(ROBOTS / urdf, root="floating")
    assert [line for line in model.report if f"read {ROBOTS / srdf}: " in line and "srdf=False" in line]
    peer = pin.buildModelFromUrdf(str(ROBOTS / urdf), pin.JointModelFreeFlyer())
    pin.loadReferenceConfigurations(peer, str(ROBOTS / srdf), False)
    poses = {item.key(): item.data() for item in peer.referenceConfigurations}
    assert {*model.poses.names} == {*poses}
    for name, theirs in poses.items():
        q, (x, y, z, w) = model.pose(name), theirs[3:7]
        np.testing.assert_allclose(q[:7], [*theirs[:3], w, x, y, z], atol=1e-12)
        for joint in model.joints:
            if joint.nq == 1:
                assert q[joint.q_slice] == theirs[peer.joints[peer.getJointId(joint.name)].idx_q]


@pytest.mark.parametrize(
    "urdf", ["anymal_b_simple_description/robots/anymal.urdf", "a1_description/urdf/a1.urdf"]
)
def test_disabled_pairs_are_those_of_pinocchio(urdf: str) -> None:
    """Pairs of links with primitive shapes that may touch: Pinocchio's without neighbours, after removal."""
    folder = ROBOTS / urdf
    srdf = folder.parents[1] / "srdf" / f"{folder.stem}.srdf"
    model = da.load(folder, root="floating")
    peer = pin.buildModelFromUrdf(str(folder), pin.JointModelFreeFlyer())
    share = str(ROBOTS.parents[1])
    geometry = pin.buildGeomFromUrdf(peer, str(folder), pin.GeometryType.COLLISION, package_dirs=share)
    geometry.addAllCollisionPairs()
    pin.removeCollisionPairs(peer, geometry, str(srdf))

    def link(number: int) -> str:
        return str(peer.frames[geometry.geometryObjects[number].parentFrame].name)

    def joint(number: int) -> int:
        return int(geometry.geometryObjects[number].parentJoint)

    theirs = set()
    for pair in geometry.collisionPairs:
        a, b = joint(pair.first), joint(pair.second)
        if a != b and peer.parents[a] != b and peer.parents[b] != a:
            theirs.add(frozenset((link(pair.first), link(pair.second))))
    names = [*model.bodies.names]
    ours = {
        frozenset(item.shape.link or names[item.body] for item in (pair.first, pair.second))
        for pair in pairs_of(model)
    }
    assert ours == theirs
    assert pairs_of(model) != pairs_of(da.load(folder, root="floating", srdf=False))


def test_fixed_roots_leave_out_the_pose_of_the_root() -> None:
    model = da.load(ROBOTS / "a1_description/urdf/a1.urdf")
    floating = da.load(ROBOTS / "a1_description/urdf/a1.urdf", root="floating")
    np.testing.assert_array_equal(model.pose("standing"), floating.pose("standing")[7:])
    assert not da.load(ROBOTS / "a1_description/urdf/a1.urdf", srdf=False).poses
