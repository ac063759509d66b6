"""Contact filters of a compiled MuJoCo model beside the masks of its geoms: exclusions and explicit pairs.

MuJoCo never lets a body touch its parent, unless that is fixed to the world. Neither do we; but where a stack
of joints has become a chain of bodies, its ends are no longer parent and child, and are excluded by name.
"""

from __future__ import annotations

from dalembert.formats.mjcf_compiled import Compiled
from dalembert.formats.mjcf_geometry import contact_is_off, has_default_friction
from dalembert.formats.mjcf_tree import Plan
from dalembert.model import ModelBuilder

__all__ = ["add_contact"]


def add_contact(builder: ModelBuilder, compiled: Compiled, plan: Plan) -> None:
    """Add the exclusions and the pairs of shapes that the file names."""
    m, report = compiled.m, compiled.report
    for name, parent, _, links in plan.chains:
        if parent != "world" and len(links) > 1:
            builder.exclude_contact(parent, name)
    if compiled.is_disabled("FILTERPARENT") and m.nbody > 2:
        report.note("ignored: the flag filterparent; a body never touches its parent here")
    for signature in m.exclude_signature:
        _exclude(builder, compiled, plan, int(signature) >> 16, int(signature) & 0xFFFF)
    _add_pairs(builder, compiled)
    if contact_is_off(compiled):
        report.note("the file switches contact off: no shape collides")
    if any(m.geom_priority[g] and not has_default_friction(m, g) for g in range(m.ngeom)):
        report.note("ignored: priorities of geoms; the larger friction of two shapes holds")
    if any(m.geom_contype) or m.npair:
        report.note("ignored: parameters of contact other than friction")
    turning = sum(int(dim) > 3 for dim in m.geom_condim) + sum(int(dim) > 3 for dim in m.pair_dim)
    if turning and not contact_is_off(compiled):
        report.warn(
            f"torsional and rolling friction of {turning} geoms or pairs (condim 4 or 6) are kept with the "
            "shapes, but contact has sliding friction only: spinning and rolling on a point are not slowed"
        )


def _exclude(builder: ModelBuilder, compiled: Compiled, plan: Plan, b: int, c: int) -> None:
    ours = plan.homes[b].body, plan.homes[c].body
    if ours[0] == ours[1]:
        return
    builder.exclude_contact(*ours)
    m = compiled.m
    for own, home in zip((b, c), ours):
        others = [k for k in range(m.nbody) if k != own and plan.homes[k].body == home and m.body_geomnum[k]]
        if others:
            compiled.report.note(
                f'the exclusion of "{compiled.bodies[b]}" and "{compiled.bodies[c]}" from contact holds for '
                f'all of "{home}", with bodies merged into it'
            )


def _add_pairs(builder: ModelBuilder, compiled: Compiled) -> None:
    m = compiled.m
    names = {shape.name for shapes in compiled.shapes.values() for shape in shapes}
    for k in range(m.npair):
        first, second = (compiled.name("GEOM", g) for g in (m.pair_geom1[k], m.pair_geom2[k]))
        if not {first, second} <= names:
            compiled.report.note(
                f'ignored: contact pair of "{first}" and "{second}", one of which is not a shape'
            )
            continue
        slide, across, torsion, roll, roll_across = (float(x) for x in m.pair_friction[k])
        if m.pair_dim[k] == 1:
            slide = across = torsion = roll = roll_across = 0.0
        if slide != across or roll != roll_across:
            compiled.report.note(
                f'contact pair of "{first}" and "{second}": friction is the same in all directions here, '
                f"{slide:g} and {roll:g}"
            )
        builder.add_contact_pair(first, second, friction=(slide, torsion, roll))
