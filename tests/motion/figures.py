"""Skeletons and motions of our own, written as BVH and as ASF/AMC, and evaluated with matrices alone."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import dalembert as da

FRAMES, FRAME_TIME = 12, 0.01


def turn(axis: str, degrees: float) -> np.ndarray:
    """The active rotation matrix, written out."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array(
        {
            "x": [[1, 0, 0], [0, c, -s], [0, s, c]],
            "y": [[c, 0, s], [0, 1, 0], [-s, 0, c]],
            "z": [[c, -s, 0], [s, c, 0], [0, 0, 1]],
        }[axis]
    )


def z_up(point: np.ndarray) -> np.ndarray:
    """A point of a file with y up in the axes that the loader promises."""
    return np.array([point[2], point[0], point[1]])


MIXED_ORDERS = """HIERARCHY
ROOT Hips
{
  OFFSET 0.1 -0.2 0.3
  CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation
  JOINT Spine
  {
    OFFSET 0.05 0.4 -0.02
    CHANNELS 3 Yrotation Xrotation Zrotation
    JOINT Head {
      OFFSET 0 0.5 0.03
      CHANNELS 3 Xrotation Zrotation Yrotation
      End Site { OFFSET 0 0.2 0 }
    }
    JOINT Left Arm
    {
      OFFSET 0.2 0.4 0
      CHANNELS 6 Zrotation Xrotation Yrotation Zposition Xposition Yposition
      JOINT LeftForeArm
      {
        OFFSET 0.3 0 0
        CHANNELS 2 Yrotation Zrotation
        JOINT LeftHand
        {
          OFFSET 0.25 0.01 0
          CHANNELS 0
          End Site
          {
            OFFSET 0.1 0 0
          }
        }
      }
    }
  }
  JOINT LeftUpLeg
  {
    OFFSET 0.1 0 0
    CHANNELS 3 Yrotation Zrotation Xrotation
    JOINT LeftLeg
    {
      OFFSET 0 -0.45 0.01
      CHANNELS 1 Xrotation
      JOINT LeftFoot
      {
        OFFSET 0 -0.42 0
        CHANNELS 4 Yposition Xrotation Yrotation Zrotation
        End Site
        {
          OFFSET 0 -0.05 0.15
        }
      }
    }
  }
}
MOTION
"""
"""Every kind of joint that channels can make, each with another order."""


def smooth_rows(width: int, frames: int = FRAMES, seed: int = 0) -> np.ndarray:
    """Channels that swing: degrees of some tens, also taken for lengths."""
    rng = np.random.default_rng(seed)
    t = np.arange(frames)[:, None] * FRAME_TIME
    return 30.0 * rng.normal(size=width) + 20.0 * rng.normal(size=width) * np.sin(
        t * rng.uniform(2.0, 9.0, width) + rng.uniform(0.0, 6.0, width)
    )


def bvh_text(hierarchy: str, rows: np.ndarray, frame_time: float = FRAME_TIME) -> str:
    lines = [" ".join(repr(float(value)) for value in row) for row in rows]
    return f"{hierarchy}Frames: {len(rows)}\nFrame Time: {frame_time!r}\n" + "\n".join(lines) + "\n"


def evaluate_bvh(text: str) -> list[dict[str, np.ndarray]]:
    """World positions of all joints and end sites for each frame, in file axes: matrices, nothing else."""
    hierarchy, motion = text.split("MOTION\n")
    rows = [[float(word) for word in line.split()] for line in motion.splitlines()[2:] if line.strip()]
    pattern = r"(ROOT|JOINT)\s+([^\n{]+)|(End Site)|OFFSET ([^\n}]+)|CHANNELS ([^\n}]+)|([{}])"
    frames = []
    for row in rows:
        values = iter(row)
        stack, places = [np.eye(4)], {}
        name = ""
        names: list[str] = []
        offset = np.zeros(3)
        pending = None
        for _, joint, site, numbers, channels, brace in re.findall(pattern, hierarchy):
            if joint or site:
                pending = joint.strip() if joint else names[-1] + "_end"
            elif brace == "{":
                names.append(pending)
                stack.append(stack[-1].copy())
            elif numbers:
                offset = np.array([float(word) for word in numbers.split()])
                stack[-1][:3, 3] += stack[-1][:3, :3] @ offset
                places[names[-1]] = stack[-1][:3, 3].copy()
            elif channels:
                move, rotation = np.zeros(3), np.eye(3)
                for channel in channels.split()[1:]:
                    value = next(values)
                    if channel.endswith("position"):
                        move["XYZ".index(channel[0])] = value
                    else:
                        rotation = rotation @ turn(channel[0].lower(), value)
                stack[-1][:3, 3] += stack[-1][:3, :3] @ move
                stack[-1][:3, :3] = stack[-1][:3, :3] @ rotation
                places[names[-1]] = stack[-1][:3, 3].copy()
            else:
                stack.pop()
                name = names.pop()
        assert name
        assert next(values, None) is None
        frames.append(places)
    return frames


ACCLAIM_BONES = {
    # name: parent, direction, length, axis [degrees], dof
    "hip": ("root", (0.6, -0.8, 0.0), 0.2, (0, 0, 0), ""),
    "femur": ("hip", (0.3, -0.9, 0.1), 0.5, (10, -20, 30), "rx ry rz"),
    "tibia": ("femur", (0.2, -0.9, 0.0), 0.45, (0, 15, 20), "rx"),
    "foot": ("tibia", (0.0, -0.2, 0.9), 0.2, (-90, 5, 20), "rx rz"),
    "back": ("root", (0.0, 1.0, 0.1), 0.5, (5, 6, 7), "rx ry rz"),
    "head": ("back", (0.0, 1.0, -0.1), 0.3, (0, 0, 40), "ry rz"),
}
ROOT_ORIENTATION = (4.0, -7.0, 12.0)
ROOT_POSITION = np.array([0.2, -0.1, 0.4])


def frame_of(degrees: tuple[float, ...]) -> np.ndarray:
    """Turns about fixed axes x, y, z in this order."""
    x, y, z = degrees
    return turn("z", z) @ turn("y", y) @ turn("x", x)


def unit(direction: tuple[float, ...]) -> np.ndarray:
    return np.array(direction) / np.linalg.norm(direction)


def acclaim_texts(rows: list[dict[str, list[float]]]) -> tuple[str, str]:
    """The .asf and the .amc text of the skeleton above."""

    def words(numbers: object) -> str:
        return " ".join(repr(float(number)) for number in numbers)  # type: ignore[attr-defined]

    asf = ["# made by hand", ":version 1.10", ":name own", ":units", "mass 1.0", "length 1.0", "angle deg"]
    asf += [":root", "order TX TY TZ RX RY RZ", "axis XYZ", f"position {words(ROOT_POSITION)}"]
    asf += [f"orientation {words(ROOT_ORIENTATION)}", ":bonedata"]
    for number, (name, (_, direction, length, axis, dof)) in enumerate(ACCLAIM_BONES.items(), 1):
        asf += ["begin", f"id {number}", f"name {name}", f"direction {words(unit(direction))}"]
        asf += [f"length {length}", f"axis {words(axis)} XYZ"]
        if dof:
            asf += [f"dof {dof}", "limits (-180 180)", *["(-180.0 180.0)"] * (len(dof.split()) - 1)]
        asf += ["end"]
    asf += [
        ":hierarchy",
        "begin",
        "root hip back",
        "hip femur",
        "femur tibia",
        "tibia foot",
        "back head",
        "end",
    ]
    amc = ["# made by hand", ":FULLY-SPECIFIED", ":DEGREES"]
    for number, row in enumerate(rows, 1):
        amc += [str(number)] + [f"{name} {words(values)}" for name, values in row.items()]
    return "\n".join(asf) + "\n", "\n".join(amc) + "\n"


def acclaim_rows(frames: int = FRAMES) -> list[dict[str, list[float]]]:
    values = smooth_rows(6 + 11, frames, seed=3)
    sizes = {"root": 6, "femur": 3, "tibia": 1, "foot": 2, "back": 3, "head": 2}
    rows = []
    for row in values:
        rest = list(row)
        rows.append({name: [float(rest.pop(0)) for _ in range(size)] for name, size in sizes.items()})
    return rows


def evaluate_acclaim(row: dict[str, list[float]]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For each bone its start and its end in the world: rotation W, W = W_parent C M C^-1."""
    C = frame_of(ROOT_ORIENTATION)
    W = {"root": C @ frame_of(tuple(row["root"][3:])) @ C.T}
    place = ROOT_POSITION + row["root"][:3]
    ends = {"root": (place, place)}
    for name, (parent, direction, length, axis, dof) in ACCLAIM_BONES.items():
        C, M = frame_of(axis), np.eye(3)
        for channel, value in zip(dof.split(), row.get(name, [])):
            M = turn(channel[1], value) @ M
        W[name] = W[parent] @ C @ M @ C.T
        start = ends[parent][1]
        ends[name] = (start, start + W[name] @ unit(direction) * length)
    return ends


def acclaim_as_bvh(rows: list[dict[str, list[float]]]) -> str:
    """The same skeleton and motion as BVH: offsets are parents' ends, rotations C M C^-1."""
    children: dict[str, list[str]] = {"root": [], **{name: [] for name in ACCLAIM_BONES}}
    for name, bone in ACCLAIM_BONES.items():
        children[bone[0]].append(name)
    lines, order = ["HIERARCHY"], []

    def end_of(name: str) -> np.ndarray:
        return np.zeros(3) if name == "root" else unit(ACCLAIM_BONES[name][1]) * ACCLAIM_BONES[name][2]

    def write(name: str, offset: np.ndarray) -> None:
        order.append(name)
        root = name == "root"
        lines.append(
            f"{'ROOT' if root else 'JOINT'} {name}\n{{\nOFFSET {' '.join(map(repr, offset.tolist()))}"
        )
        positions = "Xposition Yposition Zposition " if root else ""
        lines.append(f"CHANNELS {6 if root else 3} {positions}Zrotation Yrotation Xrotation")
        for child in children[name]:
            write(child, end_of(name))
        if not children[name]:
            lines.append(f"End Site\n{{\nOFFSET {' '.join(map(repr, end_of(name).tolist()))}\n}}")
        lines.append("}")

    write("root", ROOT_POSITION)
    frames = []
    for row in rows:
        numbers = list(row["root"][:3])
        for name in order:
            if name == "root":
                C, M = frame_of(ROOT_ORIENTATION), frame_of(tuple(row["root"][3:]))
            else:
                C, M = frame_of(ACCLAIM_BONES[name][3]), np.eye(3)
                for channel, value in zip(ACCLAIM_BONES[name][4].split(), row.get(name, [])):
                    M = turn(channel[1], value) @ M
            R = C @ M @ C.T
            angles = np.arctan2(R[1, 0], R[0, 0]), -np.arcsin(R[2, 0]), np.arctan2(R[2, 1], R[2, 2])
            numbers += [float(np.degrees(angle)) for angle in angles]
        frames.append(numbers)
    return bvh_text("\n".join(lines) + "\nMOTION\n", np.array(frames))


def loaded_places(model: da.Model, q: np.ndarray) -> dict[str, np.ndarray]:
    """World positions (T, 3) of all bodies and frames."""
    X = da.algorithms.forward_kinematics(model, list(q.T))
    places = {}
    for name in (*model.bodies.names, *model.frames.names):
        frame = model.frame(name)
        p = (X[frame.body] @ frame.placement).p
        places[name] = np.stack([np.broadcast_to(component, len(q)) for component in p], axis=1)
    return places


def saved(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
