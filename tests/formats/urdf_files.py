"""URDF files written for the tests: every joint type, and the parts to make broken files of."""

from __future__ import annotations

import random

BOX = '<inertia ixx="0.02" ixy="0.001" ixz="-0.002" iyy="0.03" iyz="0.0015" izz="0.025"/>'


def link(name: str, body: str | None = None, *, mass: float = 1.5) -> str:
    """A link, by default with an inertia off its origin and turned."""
    if body is None:
        origin = '<origin xyz="0.1 -0.05 0.2" rpy="0.3 -0.4 0.5"/>'
        body = f'<inertial>{origin}<mass value="{mass}"/>{BOX}</inertial>'
    return f'<link name="{name}">{body}</link>'


def joint(
    name: str,
    parent: str,
    child: str,
    kind: str = "revolute",
    more: str = '<axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="2" effort="3"/>',
    origin: str = '<origin xyz="0.1 0.2 0.3" rpy="0.1 -0.2 0.3"/>',
) -> str:
    """A joint between two links."""
    return (
        f'<joint name="{name}" type="{kind}">{origin}'
        f'<parent link="{parent}"/><child link="{child}"/>{more}</joint>'
    )


def robot(*parts: str, name: str = "sample") -> str:
    """A whole file; each part on a line of its own, the first on line 3."""
    return "\n".join(['<?xml version="1.0"?>', f'<robot name="{name}">', *parts, "</robot>"]) + "\n"


def arm(*more: str) -> str:
    """Base, upper and lower arm on two revolute joints, and what else a test needs."""
    return robot(
        link("base", ""),
        link("upper"),
        joint("shoulder", "base", "upper"),
        link("lower"),
        joint("elbow", "upper", "lower"),
        *more,
    )


SWING = '<axis xyz="0 0 1"/><limit lower="-2" upper="2.5" velocity="4" effort="30"/>'
TILTED = '<axis xyz="0.6 0 0.8"/><limit lower="-2" upper="2" velocity="4" effort="30"/>'


def menagerie(normal: str = "0 0 1") -> str:
    """Every joint type in one tree, with mimics, fixed links in chains, damping, friction and all shapes."""
    loss = '<dynamics damping="0.3" friction="0.1"/>'
    shapes = (
        '<visual name="v"><origin xyz="0 0 0.1" rpy="0.1 0 0"/><geometry><box size="0.1 0.2 0.3"/></geometry>'
        '<material name="red"><color rgba="1 0 0 1"/></material></visual>'
        '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
        '<collision><geometry><cylinder radius="0.1" length="0.3"/></geometry></collision>'
        '<collision><geometry><capsule radius="0.1" length="0.3"/></geometry></collision>'
        '<visual><geometry><mesh filename="meshes/a.stl" scale="1 -1 1"/></geometry>'
        '<material name="red"/></visual>'
    )
    inertial = f'<inertial><origin xyz="0 0 0.3"/><mass value="2"/>{BOX}</inertial>'
    return robot(
        link("base"),
        link("slide"),
        joint("rail", "base", "slide", "prismatic", TILTED + loss),
        link("upper", inertial + shapes),
        joint("shoulder", "slide", "upper", "revolute", SWING + loss),
        link("plate", None, mass=0.4),
        joint("glue", "upper", "plate", "fixed", ""),
        link("sensor", '<visual><geometry><box size="1 1 1"/></geometry></visual>'),
        joint("glue2", "plate", "sensor", "fixed", ""),
        link("lower"),
        joint("elbow", "sensor", "lower", "continuous", '<axis xyz="0 -1 0"/>'),
        link("finger", None, mass=0.2),
        joint(
            "grip",
            "lower",
            "finger",
            "prismatic",
            '<axis xyz="1 0 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/>'
            '<mimic joint="elbow" multiplier="-0.4" offset="0.1"/>',
        ),
        link("thumb", None, mass=0.3),
        joint("thumb", "lower", "thumb", "revolute", SWING + '<mimic joint="grip" multiplier="2"/>'),
        link("drone"),
        joint("flight", "lower", "drone", "floating", ""),
        link("puck"),
        joint("table", "base", "puck", "planar", f'<axis xyz="{normal}"/>'),
        '<transmission name="t"><type>x</type></transmission>',
        "<gazebo><mu1>1</mu1></gazebo>",
    )


def chain(n: int) -> str:
    """A chain of n links on revolute joints about all three axes."""
    parts = [link("l0", "")]
    for i in range(1, n):
        axis = ("1 0 0", "0 1 0", "0 0 1")[i % 3]
        limits = '<limit lower="-1" upper="1" velocity="1" effort="1"/>'
        parts.append(link(f"l{i}"))
        parts.append(joint(f"j{i}", f"l{i - 1}", f"l{i}", "revolute", f'<axis xyz="{axis}"/>{limits}'))
    return robot(*parts)


def mutated(text: str, rng: random.Random) -> bytes:
    """The file with a few random injuries: bytes changed, pieces cut out, doubled or exchanged."""
    content = bytearray(text.encode())
    for _ in range(rng.randint(1, 4)):
        a = rng.randrange(len(content))
        b = min(len(content), a + rng.randint(1, 40))
        kind = rng.randrange(6)
        if kind == 0:
            content[a] = rng.randrange(256)
        elif kind == 1:
            del content[a:b]
        elif kind == 2:
            content[a:a] = content[a:b]
        elif kind == 3:
            c = rng.randrange(len(content))
            content[a:b] = content[c : c + b - a]
        elif kind == 4:
            content[a:a] = rng.choice(
                [b"nan", b"1e999", b"-", b'"', b"<", b">", b"&x;", b"\x00", b"\xff", b"0"]
            )
        else:
            digits = [i for i in range(len(content)) if chr(content[i]).isdigit()]
            if digits:
                content[rng.choice(digits)] = ord(rng.choice("0123456789-.e"))
        if not content:
            break
    return bytes(content)
