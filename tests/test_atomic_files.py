"""Saving: the new file whole, or the earlier one as it was; links stay, permissions stay."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import DalembertError, FileError
from dalembert.host.atomic_files import TEMPORARY_NAME, replacing, write_file

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and signals of POSIX")
EARLIER = b"the earlier file"


def _trajectory() -> da.Trajectory:
    q = np.random.default_rng(0).normal(size=(400, 2))
    return da.Trajectory(da.models.double_pendulum(), np.arange(400.0), q, q, q[1:])


SAVERS: dict[str, Callable[[Path], object]] = {
    "a.json": lambda path: da.save(da.models.humanoid(), path),
    "a.urdf": lambda path: da.save(da.models.arm6(), path, accept_losses=True),
    "a.xml": lambda path: da.save(da.models.humanoid(), path, accept_losses=True),
    "a.npz": lambda path: _trajectory().save(path),
    "a.parquet": lambda path: _trajectory().save(path),
    "a.html": lambda path: _trajectory().save(path),
    "record.html": lambda path: da.viewer.record(_trajectory(), path),
    "a.png": lambda path: da.viewer.contact_sheet(_trajectory(), path, frames=2, size=(64, 64)),
}


@pytest.fixture(params=SAVERS)
def saver(request: pytest.FixtureRequest) -> tuple[str, Callable[[Path], object]]:
    if request.param == "a.parquet":
        pytest.importorskip("pyarrow")
    return request.param, SAVERS[request.param]


class _FullDisk:
    """A file whose disk is full after some bytes."""

    def __init__(self, file: object, room: int) -> None:
        self._file, self._room = file, room

    def write(self, content: bytes) -> int:
        self._room -= len(content)
        if self._room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(content)  # type: ignore[attr-defined,no-any-return]

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def __enter__(self) -> _FullDisk:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()  # type: ignore[attr-defined]


def test_a_full_disk_leaves_the_earlier_file(
    saver: tuple[str, Callable[[Path], object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, save = saver
    (tmp_path / name).write_bytes(EARLIER)
    real = open

    def full(file: object, mode: str = "r", *arguments: object, **options: object) -> object:
        opened = real(file, mode, *arguments, **options)  # type: ignore[call-overload]
        return _FullDisk(opened, 100) if "w" in mode else opened

    monkeypatch.setattr("builtins.open", full)
    with pytest.raises(FileError, match="No space left"):
        save(tmp_path / name)
    monkeypatch.undo()
    assert (tmp_path / name).read_bytes() == EARLIER
    assert [item.name for item in tmp_path.iterdir()] == [name]


@POSIX
def test_a_limit_of_the_system_leaves_the_earlier_file(tmp_path: Path) -> None:
    """The file size limit of the process stands for a full disk; here no part of Python is replaced."""
    program = """
import resource, signal, sys
from pathlib import Path
from tests.test_atomic_files import SAVERS
from dalembert.errors import FileError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
for name in ("a.json", "a.npz", "record.html"):
    try:
        SAVERS[name](Path(sys.argv[1]) / name)
    except FileError as error:
        print(name, "refused")
"""
    for name in ("a.json", "a.npz", "record.html"):
        (tmp_path / name).write_bytes(EARLIER)
    result = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": _path()}, check=False,
    )  # fmt: skip
    assert result.stdout.count("refused") == 3, result.stderr
    assert {item.read_bytes() for item in tmp_path.iterdir()} == {EARLIER}


def _path() -> str:
    return os.pathsep.join([str(Path(da.__file__).parents[1]), str(Path(__file__).parents[1])])


@POSIX
@pytest.mark.parametrize("name", ["a.npz", "a.json", "record.html"])
def test_a_killed_process_leaves_the_earlier_file(tmp_path: Path, name: str) -> None:
    """The process is killed inside the write of the new file."""
    program = f"""
import builtins, os, signal, sys
from pathlib import Path
from tests.test_atomic_files import SAVERS
real = open
class Killing:
    def __init__(self, file): self.file = file
    def __getattr__(self, name): return getattr(self.file, name)
    def __enter__(self): return self
    def __exit__(self, *_): self.file.close()
    def write(self, content):
        self.file.write(content[:len(content) // 2])
        self.file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
def killing(file, mode="r", *arguments, **options):
    opened = real(file, mode, *arguments, **options)
    return Killing(opened) if mode == "wb" else opened
builtins.open = killing
SAVERS["{name}"](Path(sys.argv[1]))
"""
    (tmp_path / name).write_bytes(EARLIER)
    result = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / name)],
        capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": _path()}, check=False,
    )  # fmt: skip
    assert result.returncode == -signal.SIGKILL, result.stderr
    assert (tmp_path / name).read_bytes() == EARLIER
    left = [item.name for item in tmp_path.iterdir() if item.name != name]
    assert all(TEMPORARY_NAME.fullmatch(item) for item in left)


@POSIX
def test_links_stay_and_their_targets_are_written(
    saver: tuple[str, Callable[[Path], object]], tmp_path: Path
) -> None:
    name, save = saver
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / ("target" + Path(name).suffix)
    target.write_bytes(EARLIER)
    (tmp_path / "between").symlink_to(Path("far") / target.name)
    link = tmp_path / name
    link.symlink_to("between")
    save(link)
    assert link.is_symlink()
    assert (tmp_path / "between").is_symlink()
    assert not target.is_symlink()
    assert target.read_bytes() != EARLIER
    assert sorted(item.name for item in tmp_path.rglob("*")) == sorted(["far", "between", name, target.name])


@POSIX
@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_permissions_of_an_existing_file_stay(
    saver: tuple[str, Callable[[Path], object]], tmp_path: Path, mode: int
) -> None:
    name, save = saver
    (tmp_path / name).write_bytes(EARLIER)
    (tmp_path / name).chmod(mode)
    save(tmp_path / name)
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode


@POSIX
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        for name in ("a.json", "a.npz", "a.png"):
            SAVERS[name](tmp_path / name)
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o666 & ~umask
    finally:
        os.umask(before)


@POSIX
def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to(tmp_path / "b.json")
    da.save(da.models.pendulum(), tmp_path / "a.json")
    assert (tmp_path / "a.json").is_symlink()
    assert not (tmp_path / "b.json").is_symlink()
    (tmp_path / "c.json").symlink_to(tmp_path / "c.json")
    with pytest.raises(FileError, match="cannot be written"):
        da.save(da.models.pendulum(), tmp_path / "c.json")


@POSIX
def test_pipes_are_written_directly(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.json")
    heard: list[bytes] = []
    listener = threading.Thread(target=lambda: heard.append((tmp_path / "a.json").read_bytes()), daemon=True)
    listener.start()
    da.save(da.models.pendulum(), tmp_path / "a.json")
    listener.join(timeout=30)
    assert da.Model.from_json(heard[0]) == da.models.pendulum()
    assert stat.S_ISFIFO((tmp_path / "a.json").stat().st_mode)


@POSIX
@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no /dev/stdout")
def test_the_standard_output_is_written_directly(tmp_path: Path) -> None:
    """Also where it is a file: what is printed later comes after it."""
    (tmp_path / "out.json").symlink_to("/dev/stdout")
    program = f"""
import sys, dalembert as da
print("before", flush=True)
da.save(da.models.pendulum(), {str(tmp_path / "out.json")!r})
print("after", flush=True)
"""
    with (tmp_path / "printed").open("wb") as output:
        subprocess.run(
            [sys.executable, "-c", program],
            stdout=output, timeout=120, check=True, env={**os.environ, "PYTHONPATH": _path()},
        )  # fmt: skip
        output.flush()
        assert os.fstat(output.fileno()).st_ino == (tmp_path / "printed").stat().st_ino
    printed = (tmp_path / "printed").read_bytes()
    assert printed.startswith(b"before")
    assert b"dalembert-model" in printed
    assert printed.rstrip().endswith(b"after")


def test_an_exception_in_the_block_leaves_the_earlier_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(EARLIER)

    def write(exception: type[BaseException]) -> None:
        with replacing(tmp_path / "a") as file:
            file.write(b"half")
            raise exception("stop")

    for exception in (KeyboardInterrupt, ValueError, DalembertError):
        with pytest.raises(exception):
            write(exception)
    assert [item.read_bytes() for item in tmp_path.iterdir()] == [EARLIER]


def test_what_cannot_be_written_is_an_error_of_the_library(tmp_path: Path) -> None:
    for path in (
        tmp_path,
        tmp_path / "none" / "a",
        tmp_path / "a\0b",
        tmp_path / "\ud800",
        tmp_path / ("x" * 300),
    ):
        with pytest.raises(FileError):
            write_file(path, b"")
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_names_of_the_greatest_length_are_written(tmp_path: Path) -> None:
    write_file(tmp_path / ("x" * 255), b"content")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"content"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_is_read_only_stays(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(EARLIER)
    (tmp_path / "a").chmod(0o444)
    with pytest.raises(FileError, match="read-only"):
        write_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == EARLIER
