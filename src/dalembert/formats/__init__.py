"""Models in files: `load` and `save` choose the format by the file's ending.

`.json` holds a whole model without loss; `.urdf` and `.xml` (MJCF) are the formats of others. Files are read
once, up to a limit; nothing in them is executed, and nothing outside the allowed folders is opened.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from dalembert.errors import (
    ArgumentError,
    DtypeError,
    FileError,
    InertiaError,
    ModelError,
    UnknownNameError,
    items_of,
    require_flag,
)
from dalembert.formats.meshes import resolve_meshes, with_relative_mesh_names
from dalembert.formats.resources import (
    CHANGES_DYNAMICS,
    MAX_FILE_BYTES,
    InertiaOption,
    Resources,
    RootOption,
    check_options,
    read_regular_file,
    reported_as_file_errors,
)
from dalembert.host.atomic_files import write_file
from dalembert.model.model import Model, require_model

__all__ = ["MAX_FILE_BYTES", "load", "save"]

PathLike = str | os.PathLike[str]
T = TypeVar("T")

_ELSEWHERE: Final = {
    ".xacro": "a xacro file is a program that writes URDF; run: xacro {name} > {urdf}, and load {urdf}",
    ".sdf": "SDF is not supported; convert the model to URDF or MJCF first",
    ".bvh": "a motion file; load it with da.load_motion",
    ".asf": "a motion file; load it with da.load_motion((skeleton, motion))",
    ".amc": "a motion file; load it with da.load_motion((skeleton, motion))",
}
"""Endings of files that are something else, and what to do with them."""


def load(
    path: PathLike,
    *,
    root: RootOption = None,
    inertia: InertiaOption = "as_given",
    roots: Sequence[PathLike] = (),
    trusted: bool = False,
    srdf: PathLike | Literal[False] | None = None,
) -> Model:
    """Load the model in a file: `.urdf`, `.xml` (MJCF, with the extra `mjcf`), or `.json` as `save` wrote it.

    `root`: "fixed" joins the root to the world, "floating" gives it six freedoms, None is as the file says
    (URDF: fixed). `inertia`: inertias that no body can have are used "as_given" and reported, refused
    ("strict"), or replaced by the nearest possible ones and listed ("repair"). Meshes are looked for below
    the file's folder, the folders `roots`, and those of ROS packages (`ROS_PACKAGE_PATH`,
    `AMENT_PREFIX_PATH`), `package://name/…` also in folders called `name` above the file or beside those,
    anywhere if the file is `trusted`. `srdf`: the SRDF file of a URDF file, with poses and links that never
    touch; None looks for it in the folder "srdf" beside the file's own, under the name of the file or of its
    robot; False: none. What was read, ignored, doubtful or repaired is listed in `model.report`.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "arm.urdf"
    >>> _ = da.save(da.models.two_link_arm(), path)
    >>> model = da.load(path)
    >>> print([body.name for body in model.bodies], model.nv)
    ['upper', 'lower'] 2
    """
    file = _path("path", path)
    reader = _by_ending(file, READERS, "load")
    folders = [_path("a folder of roots", item) for item in items_of(roots)]
    require_flag("trusted", trusted)
    check_options(root, inertia)
    options: dict[str, Any] = {}
    if srdf is not None:
        if file.suffix.lower() != ".urdf":
            raise ArgumentError(f"{file}: srdf is an option for URDF files; leave it out")
        options["srdf"] = srdf if srdf is False else _path("srdf", srdf)
    with reported_as_file_errors(str(file)):
        try:
            return reader(file, root=root, inertia=inertia, roots=folders, trusted=trusted, **options)
        except (FileError, InertiaError, ArgumentError):
            raise
        except ModelError as error:
            raise FileError(f"{file}: {error}") from error


def save(model: Model, path: PathLike, *, accept_losses: bool = False) -> tuple[str, ...]:
    """Write a model to a file; a file of that name is replaced only once the new one is complete.

    A symbolic link stays a link, and an existing file keeps its permissions. Returns what the format cannot
    hold, one line each. Where that changes the dynamics, it is an error unless `accept_losses` is set.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "arm.json"
    >>> print(da.save(da.models.two_link_arm(), path))  # nothing is lost
    ()
    >>> print(da.load(path) == da.models.two_link_arm())
    True
    """
    require_model(model)
    file = _path("path", path)
    require_flag("accept_losses", accept_losses)
    text, losses = _by_ending(file, WRITERS, "save")(model, folder=file.parent)
    grave = [loss.removeprefix(CHANGES_DYNAMICS) for loss in losses if loss.startswith(CHANGES_DYNAMICS)]
    if grave and not accept_losses:
        raise FileError(
            f"{file}: the format cannot hold what the dynamics depend on: {'; '.join(grave)}; save as .json, "
            "or give accept_losses=True to leave it out"
        )
    write_file(file, text)
    return tuple(loss.removeprefix(CHANGES_DYNAMICS) for loss in losses)


def _load_json(
    file: Path, *, root: RootOption, inertia: InertiaOption, roots: Sequence[Path], trusted: bool
) -> Model:
    if root is not None or inertia != "as_given":
        raise ArgumentError(
            f"{file}: root and inertia are options for URDF and MJCF; a .json model is complete"
        )
    return resolve_meshes(Model.from_json(_content(file)), Resources(file.parent, roots, trusted=trusted))


def _later(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module that is imported at the first call."""
    return lambda *args, **options: getattr(import_module(f"dalembert.formats.{module}"), name)(
        *args, **options
    )


READERS: Final[dict[str, Callable[..., Model]]] = {
    ".json": _load_json,
    ".urdf": lambda file, **options: _later("urdf", "load_urdf")(
        _content(file), name=str(file), folder=file.parent, **{"srdf": None, **options}
    ),
    ".xml": _later("mjcf", "load_mjcf"),
    ".mjcf": _later("mjcf", "load_mjcf"),
}
WRITERS: Final[dict[str, Callable[..., tuple[str, list[str]]]]] = {
    ".json": lambda model, folder: (with_relative_mesh_names(model, folder).to_json(), []),
    ".urdf": _later("urdf.urdf_writer", "urdf_text"),
    ".xml": _later("mjcf.mjcf_writer", "mjcf_text"),
    ".mjcf": _later("mjcf.mjcf_writer", "mjcf_text"),
}
"""Readers of files, and writers of text for a folder with what the text does not hold."""


def _path(what: str, value: object) -> Path:
    """Return the path that an argument of a caller is."""
    if isinstance(value, str | os.PathLike):
        with contextlib.suppress(TypeError):  # a path of bytes
            return Path(value)
    raise DtypeError(f"{what} is of type {type(value).__name__}; give a str or a pathlib.Path")


def _by_ending(file: Path, known: Mapping[str, T], action: str) -> T:
    ending = file.suffix.lower()
    if file.is_dir():
        raise FileError(f"{file} is a folder; name a file in it")
    if ending in _ELSEWHERE and action == "load":
        urdf = file.name[: -len(ending)].removesuffix(".urdf") + ".urdf"
        raise FileError(f"{file}: {_ELSEWHERE[ending].format(name=file.name, urdf=urdf)}")
    if ending not in known:
        raise UnknownNameError.of(f"file format to {action}", ending or file.name, known)
    return known[ending]


def _content(file: Path) -> bytes:
    """Read the bytes of a regular file of bounded size that is not empty."""
    content = read_regular_file(file, limit=MAX_FILE_BYTES)
    if not content.strip():
        raise FileError(f"{file} is empty")
    return content
