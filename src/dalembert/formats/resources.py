"""Files that a model file names: found below allowed folders only, and read up to a limit.

A model file comes from anywhere, so the names in it are not trusted: a name is resolved first, symbolic links
included, and then has to lie below the model file's folder, a root that the caller named, a folder of
packages that the environment names (`ROS_PACKAGE_PATH`, `AMENT_PREFIX_PATH`), or, if it names a package, in
the folder of that package above or beside the file. Nothing is fetched, and only regular files are opened.
Beside them stand the options of readers, their reports on the content of a file, their errors, and the losses
of writers.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, final, get_args
from urllib.parse import unquote

import numpy as np

from dalembert.errors import DalembertError, FileError, require_choice

if TYPE_CHECKING:
    from dalembert.model.model import Model

MAX_FILE_BYTES: Final = 64 * 1024 * 1024
"""Larger model and motion files are rejected before they are read."""
MAX_NAMES_COMPARED: Final = 10_000
"""Names in a folder that are compared with that of a file that does not exist, which takes 0.1 s."""
MAX_NAME_LENGTH: Final = 4096
"""Longer names of files are refused."""

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # two letters or more: "C:" is a drive
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NEVER: Final = ("http", "https", "ftp", "ftps")


class MissingResourceError(FileError):
    """A file that a model names and that is in none of the places where it may be."""


@final
class Resources:
    """The files that a model file may name.

    `folder` is the model file's own, `roots` are folders that the caller allows besides; `trusted` lifts the
    limit to these folders, but never fetches anything and never opens what is not a regular file.
    """

    __slots__ = ("_allowed", "_folder", "_package_roots", "_trusted")

    def __init__(self, folder: Path, roots: Sequence[Path] = (), *, trusted: bool = False) -> None:
        self._folder = Path(folder).resolve()
        self._allowed = (self._folder, *(Path(root).resolve() for root in roots))
        self._package_roots = _package_roots()
        self._trusted = trusted

    def resolve(self, uri: str, *, what: str) -> Path:
        """Return the regular file that `uri` names; `what` names its user in messages, such as `mesh of
        "hand"`.

        Relative names start at the folder, then at the roots. `package://name/rest` is looked for in folders
        called `name`: the folder and the roots themselves and what they hold, the folders of packages of the
        environment, then the folders above the file, nearest first, and those beside them (`_packages`); it
        stays in that package. `file://`, absolute names, `~` and names that lead out of the allowed folders
        are refused unless trusted; `http://` and its kin always. A file that is not there raises
        `MissingResourceError`, which is a `FileError`.
        """
        if not uri.strip():
            raise FileError(f"{what}: the name of the file is empty")
        if len(uri) > MAX_NAME_LENGTH or _CONTROL.search(unquote(uri)):
            raise FileError(
                f"{what}: {uri[:60]!r} is not a file name (it holds a NUL or another control "
                f"character, such as a line break, or has over {MAX_NAME_LENGTH} characters)"
            )
        place = f'{what}: "{uri}"'
        outside = None
        for package, candidate in self._candidates(uri, place):
            try:
                found = candidate.resolve()
                if Path(os.path.normpath(candidate)).resolve() != found:
                    raise FileError(
                        f"{place} goes through a symbolic link and back by '..', which programs read in "
                        "different ways; name the file directly"
                    )
                in_package = package is not None and found.is_relative_to(package)
                if not (in_package or self._inside(found)):  # whether it exists is nobody's business
                    outside = found
                    continue
                status = found.stat()
            except (OSError, RuntimeError, UnicodeError):  # missing, a ring of links, a lone surrogate
                continue
            if not stat.S_ISREG(status.st_mode):
                kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
                raise FileError(f"{place} is {kind}; only regular files are read")
            return found
        if outside is not None:
            raise FileError(f"{place} leads to {outside}, {self._limits()}")
        packages = ""
        if uri.lower().startswith("package:"):
            packages = (
                " and in packages above and beside the file; name the folder of its package (roots=[…])"
            )
        raise MissingResourceError(
            f"{place} does not exist; looked below {self._allowed_folders()}{packages}"
        )

    def admits(self, path: Path) -> bool:
        """Return whether an absolute path lies in a place that may be read; the file need not exist."""
        try:
            return self._inside(path.resolve())
        except (OSError, RuntimeError, ValueError):
            return False

    def _candidates(self, uri: str, place: str) -> Iterator[tuple[Path | None, Path]]:
        """Return the paths where the file may be, in order, each after the package that it may not leave, if
        any; names of forbidden kinds are refused first.
        """
        match = _SCHEME.match(uri)
        scheme, rest = (match[1].lower(), uri[match.end() :]) if match else ("", uri)
        if scheme in _NEVER:
            raise FileError(
                f"{place} is on the network; nothing is fetched: store a copy beside the model file"
            )
        if scheme == "package":
            return self._package(rest, place)
        beyond: tuple[str, str] | None = None  # a name that may lead anywhere: its kind, and the path
        if scheme == "file":
            beyond = "is a file: address", unquote(rest.removeprefix("//"))
        elif scheme:
            raise FileError(f'{place} has the unknown scheme "{scheme}:"; known: package://, file://')
        elif uri.startswith("~"):
            beyond = "starts at a home folder", os.path.expanduser(uri)
        elif Path(uri).is_absolute() or uri.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", uri):
            beyond = "is an absolute path", uri
        if beyond is None:
            return ((None, root / uri) for root in self._allowed)
        if not self._trusted:
            raise FileError(f"{place} {beyond[0]}, {self._limits()}")
        return iter([(None, Path(beyond[1]))])

    def _package(self, rest: str, place: str) -> Iterator[tuple[Path | None, Path]]:
        """Yield where a file of a package may be: in folders of its name, themselves or inside others."""
        name, _, path = unquote(rest).removeprefix("//").partition("/")
        if name in ("", ".", "..", "~") or "\\" in name:
            raise FileError(f"{place} names no package; the form is package://name/path/in/it")
        if not path:
            raise FileError(f"{place} names a package but no file in it")
        if path.startswith("/"):
            raise FileError(f"{place} has an absolute path inside a package; write package://{name}/path")
        for root in (*self._allowed, *self._package_roots):
            if root.name == name:
                yield None, root / path
            yield None, root / name / path
        for package in self._packages(name):
            yield package, package / path

    def _packages(self, name: str) -> Iterator[Path]:
        """Yield the folders called `name` above the model file, nearest first, and beside those above it.

        A name of a package does not begin with a dot, and what lies directly below the root of the file
        system, such as /home or /etc, is a package only if it has a package.xml: the model file chooses the
        name.
        """
        if name.startswith("."):
            return
        above = (self._folder, *self._folder.parents)
        own = [folder for folder in above if folder.name == name]
        for package in (*own, *(folder / name for folder in above)):
            top = package.parent == package.parent.parent
            if not top or (package / "package.xml").is_file():
                yield package

    def _inside(self, path: Path) -> bool:
        return self._trusted or any(
            path.is_relative_to(root) for root in (*self._allowed, *self._package_roots)
        )

    def _limits(self) -> str:
        return (
            f"but files are read below {self._allowed_folders()} only; name another root (roots=[…]), or "
            "trust the file (trusted=True)"
        )

    def _allowed_folders(self) -> str:
        return ", ".join(str(root) for root in dict.fromkeys(self._allowed))


def _package_roots() -> tuple[Path, ...]:
    """Return the folders of packages that ROS 1 and ROS 2 name in the environment."""
    named = [Path(item) for item in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if item]
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    named += [Path(item) / "share" for item in prefixes if item]
    return tuple(path.resolve() for path in named if path.is_absolute())


def read_regular_file(path: str | os.PathLike[str], *, limit: int) -> bytes:
    """Read the bytes of a regular file of at most `limit` bytes; never open devices, pipes or folders."""
    with open_regular_file(path) as stream:
        promised = os.fstat(stream.fileno()).st_size
        try:
            # One byte more than was promised: the file may still grow, and the limit holds all the same.
            content = stream.read(promised + 1) if promised <= limit else b""
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror}") from error
    size = max(promised, len(content))
    if size > limit:
        raise FileError(f"{path} has {size} bytes; files up to {limit} bytes are read")
    return content


def open_regular_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file to read bytes from; devices, pipes and folders are not opened."""
    file = Path(path)
    try:
        _refuse_unless_regular(file, file.stat())
        # What was a file a moment ago may be a pipe now: opening it must not wait.
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        stream = os.fdopen(descriptor, "rb")
        try:
            _refuse_unless_regular(file, os.fstat(descriptor))
        except FileError:
            stream.close()
            raise
        return stream
    except OSError as error:
        remedy = _names_like(file) if isinstance(error, FileNotFoundError) else ""
        raise FileError(f"{file} cannot be read: {error.strerror}{remedy}") from error
    except ValueError as error:  # a NUL character or a lone surrogate in the name
        if isinstance(error, FileError):
            raise
        raise FileError(f"{str(file)!r} cannot be read: {error}") from error


def _names_like(file: Path) -> str:
    """Return the remedy for a file that does not exist: names like its own, or which folder is missing."""
    missing = next((folder for folder in reversed(file.parents) if not folder.is_dir()), None)
    if missing is not None:
        return f"; the folder {missing} does not exist"
    with contextlib.suppress(OSError), os.scandir(file.parent) as entries:
        names = [entry.name for entry in islice(entries, MAX_NAMES_COMPARED)]
        if near := difflib.get_close_matches(file.name, names, n=3, cutoff=0.6):
            return "; nearest: " + ", ".join(f'"{name}"' for name in near)
    return f"; nothing in the folder {file.parent.resolve()} has such a name"


def _refuse_unless_regular(file: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{file} is a folder; name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{file} is not a regular file; devices, pipes and sockets are not read")


# Options, reports and errors of readers, and the losses of writers

RootOption = Literal["fixed", "floating"] | None
InertiaOption = Literal["as_given", "strict", "repair"]

CHANGES_DYNAMICS: Final = "changes the dynamics: "
"""Prefix of a line about a loss that changes how the model moves."""

MAX_LINES_OF_A_KIND: Final = 200
"""Lines kept of one kind and subject; the rest are counted, so that a hostile file cannot fill memory."""

_LINES_NAMED: Final = 3


def check_options(root: object, inertia: object) -> None:
    """Reject options of readers that do not exist."""
    if root is not None:
        require_choice("root", root, ("fixed", "floating"))
    require_choice("inertia option", inertia, get_args(InertiaOption))


def reject_functions(model: Model, format_name: str) -> None:
    """Refuse to write a model with constraints that are functions, which no file can hold."""
    names = [f'constraint "{item.name}"' for item in model.constraints]
    if model.closure is not None:
        names.append("the loop closure")
    if names:
        raise FileError(
            f"{format_name} cannot hold functions, such as {names[0]}; save model.tree(), and add them again "
            "when loading"
        )


class Report:
    """The lines for `model.report`; ignored things of one kind share a line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._ignored: dict[str, list[int]] = {}
        self._left_out = 0

    def warn(self, message: str) -> None:
        """Add a warning: a doubtful value was used as the file gives it."""
        self.note(f"warning: {message}")

    def repair(self, message: str) -> None:
        """Add a repair: a value was changed so that it makes sense."""
        self.note(f"repaired: {message}")

    def note(self, message: str) -> None:
        """Add a remark on how the file was understood."""
        if len(self._lines) < MAX_LINES_OF_A_KIND * 10:
            self._lines.append(message)
        else:
            self._left_out += 1

    def ignore(self, what: str, line: int) -> None:
        """Count something in the file without effect, such as `<material>`, at that line."""
        if what in self._ignored or len(self._ignored) < MAX_LINES_OF_A_KIND:
            self._ignored.setdefault(what, []).append(line)
        else:
            self._left_out += 1

    def lines(self) -> tuple[str, ...]:
        """Return warnings and repairs in the order in which they came, then what was ignored."""
        ignored = []
        for what, lines in self._ignored.items():
            named = ", ".join(map(str, lines[:_LINES_NAMED])) + (", …" if len(lines) > _LINES_NAMED else "")
            times = f"{len(lines)} times, lines" if len(lines) > 1 else "line"
            ignored.append(f"ignored: {what}, {times} {named}")
        more = [f"… and {self._left_out} lines more"] if self._left_out else []
        return (*self._lines, *ignored, *more)


FAILURES: Final = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError,
    np.linalg.LinAlgError,
)  # fmt: skip
"""What hostile content can make a reader raise where no check of ours rejected it first. `OSError` and
`KeyboardInterrupt` are not among them: they are not about the content.
"""


@contextlib.contextmanager
def reported_as_file_errors(name: str) -> Iterator[None]:
    """Turn failures of a reader into a `FileError` that names the file and keeps the failure as its cause.

    A reader rejects bad content by its own checks, with the place and the remedy. What gets past them ends
    here, so that callers need to catch errors of the library only.
    """
    try:
        yield
    except DalembertError:
        raise
    except FAILURES as error:
        raise FileError(
            f"{name} cannot be read: its content leads to {type(error).__name__}: {str(error)[:200]}; "
            "please report the file as a defect of dalembert"
        ) from error
