"""COLLADA files with what those of robots have: a unit, nodes in nodes, materials, triangles, polygons."""

from __future__ import annotations

UNIT_CUBE = "0 0 0 1 0 0 0 1 0 1 1 0 0 0 1 1 0 1 0 1 1 1 1 1"
CUBE_QUADS = "0 2 3 1 4 5 7 6 0 1 5 4 2 6 7 3 0 4 6 2 1 3 7 5"
"""Corner number = 4 z + 2 y + x; faces look outward."""


def material(name: str, diffuse: str) -> tuple[str, str]:
    """The elements of a material and of its effect."""
    shader = f"<phong><diffuse>{diffuse}</diffuse></phong>"
    return (
        f'<material id="{name}"><instance_effect url="#{name}-effect"/></material>',
        f'<effect id="{name}-effect"><profile_COMMON><technique>{shader}</technique>'
        "</profile_COMMON></effect>",
    )


def source(name: str, numbers: str, stride: int = 3) -> str:
    count = len(numbers.split())
    return (
        f'<source id="{name}"><float_array id="{name}-array" count="{count}">{numbers}</float_array>'
        f'<technique_common><accessor source="#{name}-array" count="{count // stride}" stride="{stride}">'
        '<param name="X" type="float"/></accessor></technique_common></source>'
        f'<vertices id="{name}-vertices"><input semantic="POSITION" source="#{name}"/></vertices>'
    )


def geometry(name: str, primitives: str, numbers: str = UNIT_CUBE, stride: int = 3) -> str:
    mesh = source(f"{name}-positions", numbers, stride) + primitives
    return f'<geometry id="{name}"><mesh>{mesh}</mesh></geometry>'


def primitive(tag: str, name: str, content: str, symbol: str = "", offset: int = 0, more: str = "") -> str:
    """A primitive of the vertices of a geometry of that name."""
    named = f' material="{symbol}"' if symbol else ""
    vertices = f'<input semantic="VERTEX" source="#{name}-positions-vertices" offset="{offset}"/>'
    return f"<{tag}{named}>{vertices}{more}{content}</{tag}>"


def instance(name: str, **targets: str) -> str:
    bound = "".join(
        f'<instance_material symbol="{key}" target="#{value}"/>' for key, value in targets.items()
    )
    bind = f"<bind_material><technique_common>{bound}</technique_common></bind_material>" if targets else ""
    return f'<instance_geometry url="#{name}">{bind}</instance_geometry>'


def collada(
    *geometries: str,
    nodes: str,
    materials: tuple[tuple[str, str], ...] = (),
    asset: str = "",
    library: str = "",
) -> str:
    """A whole file."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">\n'
        f"<asset>{asset}<up_axis>Y_UP</up_axis></asset>\n"
        f"<library_effects>{''.join(effect for _, effect in materials)}</library_effects>\n"
        f"<library_materials>{''.join(item for item, _ in materials)}</library_materials>\n"
        f"<library_geometries>{''.join(geometries)}</library_geometries>\n"
        f"<library_nodes>{library}</library_nodes>\n"
        f'<library_visual_scenes><visual_scene id="scene">{nodes}</visual_scene></library_visual_scenes>\n'
        '<scene><instance_visual_scene url="#scene"/></scene>\n</COLLADA>\n'
    )


def quads(name: str, symbol: str = "") -> str:
    """The six faces of the unit cube as a polylist."""
    return primitive("polylist", name, f"<vcount>4 4 4 4 4 4</vcount><p>{CUBE_QUADS}</p>", symbol)


def collada_text() -> str:
    """A red and a white cube, in centimetres."""
    return collada(
        geometry("cube", quads("cube", "paint")),
        asset='<unit name="cm" meter="0.01"/>',
        materials=(material("red", "<color>1 0 0 1</color>"), material("white", "<color>1 1 1 1</color>")),
        nodes=f'<node id="a"><translate>3 0 0</translate>{instance("cube", paint="red")}'
        f"<node><rotate>0 0 1 90</rotate><scale>1 2 3</scale>{instance('cube', paint='white')}</node></node>",
    )
