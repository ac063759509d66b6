"""One HTML file that holds the page, its program and its data, and asks nothing of the network."""

from __future__ import annotations

import html
import json
from importlib import resources
from typing import Any, Final

__all__ = ["page_of"]

PROGRAM: Final = (
    "numbers.js",
    "solids.js",
    "shaders.js",
    "renderer.js",
    "camera.js",
    "motion.js",
    "plots.js",
    "sliders.js",
    "stage.js",
    "main.js",
)
"""The files of the program, in the order in which they stand in the page."""


def page_of(scene: dict[str, Any]) -> str:
    """Return the page that shows a scene.

    Names come from files of others: in JSON every `<`, `>` and `&` is escaped, so that no text can end the
    element that holds it; the page writes names as text only. Its policy forbids it to load anything.
    """
    data = json.dumps(scene, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    program = "\n".join(_static(name) for name in PROGRAM)
    parts = {
        "TITLE": html.escape(scene["title"]),
        "POLICY": "connect-src 'self'" if scene["live"] else "connect-src 'none'",
        "STYLE": _static("page.css"),
        "PROGRAM": f'(function () {{\n"use strict";\n{program}\n}})();',
        "SCENE": data,
    }
    pieces = _static("page.html").split("@@")
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def _static(name: str) -> str:
    return (resources.files("dalembert.viewer") / "static" / name).read_text(encoding="utf-8")
