"""Refuse numbers in MJCF files that would make MuJoCo's compiler allocate without bound."""

from __future__ import annotations

import math
from typing import Final

from dalembert.formats.document import Element

__all__ = ["MAX_REPLICAS", "MAX_SAMPLES", "check_amounts", "check_height_field"]

MAX_REPLICAS: Final = 10_000
"""Copies that nested `<replicate>` elements may make of one element, and parts of one `<composite>`."""

MAX_COPIED_ELEMENTS: Final = 500_000
"""Elements of a model after all copies are made, as many as one file may have."""

MAX_SAMPLES: Final = 16 * 1024 * 1024
"""Samples of the height fields and custom numbers of a model together; a field of 4096 x 4096 is one of
these."""

MAX_TEXELS: Final = 64 * 1024 * 1024
"""Samples of one generated texture."""

MAX_SIZE: Final = 100_000
"""Entries that `<size>` may reserve of each kind."""

MAX_SUBDIVISIONS: Final = 1_000
"""Greatest parameter of a generated mesh."""

UNUSED_SIZES: Final = ("memory", "nstack", "njmax", "nconmax", "nuserdata")
"""What `<size>` reserves for MuJoCo's own simulation, which is not run."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"


def check_amounts(root: Element) -> None:
    """Refuse elements that stand for more than a model needs, one by one and together."""
    samples = elements = 0.0
    waiting = [(root, 1.0)]
    while waiting:
        element, copies = waiting.pop()
        elements += copies
        samples += _samples(element)
        if element.tag == "replicate":
            copies *= max(1.0, _numbers(element, "count", 1.0)[0])
            if copies > MAX_REPLICAS:
                raise element.error(f"<replicate> makes {copies:g} copies; up to {MAX_REPLICAS} are made")
        if elements > MAX_COPIED_ELEMENTS:
            raise element.error(f"copies make more than {MAX_COPIED_ELEMENTS} elements; no model needs that")
        if samples > MAX_SAMPLES:
            raise element.error(f"<{element.tag}> makes {samples:g} samples; up to {MAX_SAMPLES} are made")
        _check_sizes(element)
        waiting += [(child, copies) for child in reversed(element.children)]


def _samples(element: Element) -> float:
    names = {"hfield": ("nrow", "ncol"), "numeric": ("size",)}.get(element.tag, ())
    return _product(element, names) if names else 0.0


def _product(element: Element, names: tuple[str, ...]) -> float:
    return math.prod(max(1.0, _numbers(element, name, 1.0)[0]) for name in names)


def _check_sizes(element: Element) -> None:
    if element.tag == "size":
        for name in UNUSED_SIZES:
            element.attributes.pop(name, None)
        for name in element.attributes:
            if max(_numbers(element, name, 0.0)) > MAX_SIZE:
                raise element.error(
                    f"{name} is {element.attributes[name][:40]}; up to {MAX_SIZE} entries are reserved"
                )
    if element.tag == "texture" and (texels := _product(element, ("width", "height"))) > MAX_TEXELS:
        raise element.error(f"<texture> has {texels:g} samples; up to {MAX_TEXELS} are made")
    if element.tag == "composite":
        parts = math.prod(max(1.0, number) for number in _numbers(element, "count", 1.0))
        if parts > MAX_REPLICAS:
            raise element.error(f"<composite> makes {parts:g} parts; up to {MAX_REPLICAS} are made")
    if element.tag == "mesh" and max(_numbers(element, "params", 0.0)) > MAX_SUBDIVISIONS:
        raise element.error(f"a parameter of a generated mesh exceeds {MAX_SUBDIVISIONS}")


def check_height_field(element: Element, content: bytes) -> None:
    """Refuse a picture of heights that promises more samples than are read: a few bytes of PNG can hold
    thousands of megabytes.
    """
    if content.startswith(_PNG):
        width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
        if width * height > MAX_SAMPLES:
            raise element.error(f"the picture has {width} x {height} samples; up to {MAX_SAMPLES} are read")


def _numbers(element: Element, name: str, default: float) -> list[float]:
    try:
        found = [float(word) for word in element.attributes.get(name, "").split()]
    except ValueError:  # the compiler says more about it
        return [default]
    return found or [default]
