"""Copies of a model's meshes beside a file that is to be written, so that the file can name them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final, final

from dalembert.errors import DalembertError
from dalembert.formats.meshes import MAX_MESH_BYTES, read_mesh
from dalembert.formats.mjcf.files import MESH_ENDINGS
from dalembert.formats.resources import read_regular_file
from dalembert.formats.triangle_mesh import TriangleMesh
from dalembert.host.atomic_files import write_file
from dalembert.model.model import Model
from dalembert.model.shapes import Mesh, Shape
from dalembert.model.values import rebuilt

MJCF: Final = (".xml", ".mjcf")


@final
class MeshCopies:
    """Copies of meshes in the folder `<name>_meshes` beside a target file; `lost` names those that cannot be
    kept. MJCF takes few formats: a mesh in another becomes an OBJ file, where it can be read.
    """

    def __init__(self, target: Path) -> None:
        self._beside = target.resolve().parent
        self.folder = self._beside / f"{target.stem}_meshes"
        self._endings = MESH_ENDINGS if target.suffix.lower() in MJCF else ()
        self._copies: dict[str, Path | None] = {}
        self.contents: dict[Path, bytes] = {}
        self.lost: list[str] = []

    def of(self, model: Model) -> Model:
        """Return the model with its meshes named where their copies will be; nothing is written yet."""
        bodies = [replace(body, shapes=self._rename_meshes(body.shapes)) for body in model.bodies]
        return rebuilt(model, bodies=bodies, world_shapes=self._rename_meshes(model.world_shapes))

    def write(self) -> None:
        """Write the copies."""
        if self.contents:
            self.folder.mkdir(exist_ok=True)
        for path, content in self.contents.items():
            write_file(path, content)

    def remove(self) -> None:
        """Remove the copies, and their folder where it is empty then."""
        for path in self.contents:
            path.unlink(missing_ok=True)
        if self.contents and self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _rename_meshes(self, shapes: Iterable[Shape]) -> tuple[Shape, ...]:
        found: list[Shape] = []
        for shape in shapes:
            copy = self._copy(shape) if isinstance(shape, Mesh) else None
            found.append(shape if copy is None else replace(shape, path=str(copy)))  # type: ignore[call-arg]
        return tuple(found)

    def _copy(self, shape: Mesh) -> Path | None:
        """Return where the copy of a mesh will be, or None for one that stays where it is or is lost."""
        path = Path(shape.path)
        if shape.path not in self._copies:
            self._copies[shape.path] = None
            try:
                if not shape.readable:
                    raise DalembertError("was not found when the model was loaded")
                self._copies[shape.path] = self._plan_copy(path)
            except DalembertError as error:
                self.lost.append(f"{path.name}: {error}")
        return self._copies[shape.path]

    def _plan_copy(self, path: Path) -> Path | None:
        fits = not self._endings or path.suffix.lower() in self._endings
        if fits and path.resolve().is_relative_to(self._beside):
            return None
        content = (
            read_regular_file(path, limit=MAX_MESH_BYTES) if fits else obj_text(read_mesh(path)).encode()
        )
        name, number = path.name if fits else f"{path.stem}.obj", 1
        while self.folder / name in self.contents:
            number += 1
            name = f"{path.stem}_{number}{path.suffix if fits else '.obj'}"
        self.contents[self.folder / name] = content
        return self.folder / name


def obj_text(mesh: TriangleMesh) -> str:
    """Return a mesh as the text of an OBJ file."""
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in mesh.vertices.tolist()]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in mesh.faces.tolist()]
    return "\n".join(lines) + "\n"
