"""The summary that people read."""

from __future__ import annotations

from dalembert import models
from dalembert.model import ModelBuilder, replace_values
from dalembert.model.joints import Revolute
from dalembert.models.random_trees import random_inertia


def test_the_tree_is_drawn_with_joints_places_and_masses() -> None:
    text = models.humanoid().summary()
    lines = text.splitlines()
    assert lines[0].startswith(
        "humanoid: 20 bodies, nq = 46, nv = 43, total mass 75 kg, gravity (0, 0, -9.81)"
    )
    assert "pelvis (floating)" in lines[1]
    row = next(line for line in lines if "left_hand" in line and "universal" in line)
    assert row.split()[-4:] == ["2", "22:24", "20:22", "0.45"]
    # Limb by limb: an arm's bodies follow each other although the numbering interleaves limbs.
    shown = [line.replace("│", " ").replace("├─", " ").replace("└─", " ").split()[0] for line in lines[5:25]]
    assert shown[8:12] == ["right_upper_arm", "right_elbow", "right_forearm", "right_hand"]
    assert "joints without a motor: root" in text
    assert "quaternions: (w, x, y, z)" in text
    assert "angular, linear velocity in body coordinates" in text


def test_branches_are_drawn_under_their_parents() -> None:
    builder = ModelBuilder(name="t")
    for name, parent in (("a", "world"), ("b", "a"), ("c", "a"), ("d", "b"), ("e", "world")):
        builder.add_body(name, parent, Revolute(), inertia=random_inertia(1))
    lines = builder.build().summary().splitlines()
    drawn = [line.split("  revolute")[0].rstrip().rsplit(maxsplit=1)[0].rstrip() for line in lines[5:10]]
    assert drawn == ["├─ a", "│  ├─ b", "│  │  └─ d", "│  └─ c", "└─ e"]


def test_loops_couplings_frames_and_warnings_are_listed() -> None:
    builder = ModelBuilder()
    builder.add_body("a", "world", Revolute(), "motor", inertia=random_inertia(1))
    builder.add_body("b", "a", Revolute(), "finger")
    builder.add_frame("tip", "b")
    builder.add_loop("pin", "b", "world", Revolute())
    builder.add_coupling("gear", {"motor": 1.0, "finger": -50.0}, offset=0.5)
    text = builder.build().summary()
    assert "frames: tip on b" in text
    assert "pin: revolute joint, b – world, 5 constraints" in text
    assert "gear: 1·motor + -50·finger + 0.5 = 0, finger follows" in text
    assert "follows  follows" in text
    assert 'body "b" moves, has no mass' in text
    assert "nq = 1, nv = 1" in text


def test_long_chains_are_cut_off() -> None:
    builder = ModelBuilder()
    for i in range(1000):
        builder.add_body(f"b{i}", f"b{i - 1}" if i else "world", Revolute(), inertia=random_inertia(1))
    text = builder.build().summary()
    assert "… and 600 bodies more" in text
    assert max(map(len, text.splitlines())) < 200


def test_symbols_are_printed_as_they_are() -> None:
    class Symbol:
        def __radd__(self, other: object) -> Symbol:
            return self

        def __str__(self) -> str:
            return "m"

        def __mul__(self, other: object) -> Symbol:
            return self

        __rmul__ = __sub__ = __rsub__ = __add__ = __mul__

    model = replace_values(models.pendulum(), {"gravity": [0.0, 0.0, Symbol()]})
    assert "gravity (0, 0, m)" in model.summary()
