"""Entries on disk: whole or not there, private, bounded, and never another file of the user's."""

from __future__ import annotations

import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dalembert.host.disk_cache import DiskCache, cache_directory, cache_folder

CACHE = DiskCache("sample", max_bytes=10_000)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache"
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(path))
    CACHE._rooms.clear()
    return path


def key(number: int) -> str:
    return f"{number:064x}"


def test_what_is_stored_is_loaded(folder: Path) -> None:
    assert CACHE.load(key(1)) is None
    assert CACHE.store(key(1), {"gap": 0.25}, [b"corners", b"", b"\0faces"])
    assert CACHE.load(key(1)) == ({"gap": 0.25}, [b"corners", b"", b"\0faces"])
    assert CACHE.load(key(2)) is None
    assert DiskCache("other", max_bytes=10_000).load(key(1)) is None
    if os.name == "posix":
        assert stat.S_IMODE(folder.stat().st_mode) & 0o022 == 0


@pytest.mark.parametrize("place", [0, 30, 60, -1])
def test_a_damaged_entry_is_deleted(folder: Path, place: int) -> None:
    CACHE.store(key(1), {}, [b"x" * 100])
    (path,) = folder.iterdir()
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    assert CACHE.load(key(1)) is None
    assert not path.exists()
    path.write_bytes(b"")
    assert CACHE.load(key(1)) is None


def test_the_least_recently_used_entries_go_first(folder: Path) -> None:
    """Files of other names stay, however many there are."""
    folder.mkdir(mode=0o700)
    for name in ("notes.txt", key(5), f"{key(5)}.kernel"):
        (folder / name).write_bytes(b"y" * 20_000)
    for number in range(20):
        CACHE.store(key(number), {}, [b"x" * 1000])
        path = folder / f"{key(number)}.sample"
        os.utime(path, (1e9 + number, 1e9 + number))
        if number:
            assert CACHE.load(key(0)) is not None  # which makes it the latest
        sizes = [item.stat().st_size for item in folder.iterdir() if item.suffix == ".sample"]
        assert sum(sizes) <= 10_000 + len(path.read_bytes())
    assert CACHE.load(key(0)) is not None
    assert CACHE.load(key(19)) is not None
    assert CACHE.load(key(1)) is None
    for name in ("notes.txt", key(5), f"{key(5)}.kernel"):
        assert (folder / name).exists()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
def test_a_folder_that_others_may_write_to_is_not_used(folder: Path) -> None:
    CACHE.store(key(1), {}, [b"x"])
    folder.chmod(0o777)
    assert cache_folder() is None
    assert CACHE.load(key(1)) is None
    assert not CACHE.store(key(2), {}, [b"x"])


def test_without_a_folder_nothing_is_kept_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert not CACHE.store(key(1), {}, [b"x"])
    assert CACHE.load(key(1)) is None


def test_only_files_of_the_cache_are_deleted(folder: Path) -> None:
    """The folder may be one in which the user has other files."""
    folder.mkdir(mode=0o700, exist_ok=True)
    names = (
        "notes.tmp",
        "tmpabcdefgh.tmp",
        "mine.sample",
        ".dalembert-x.tmp",
        ".dalembert-0123456789abcdef.tmp.old",
    )
    left = ".dalembert-0123456789abcdef.tmp"
    for name in (*names, left):
        (folder / name).write_bytes(b"x" * 2000)
        os.utime(folder / name, (1e9, 1e9))
    for number in range(16):
        assert CACHE.store(key(number), {}, [b"x" * 1500])
    assert all((folder / name).exists() for name in names)
    assert not (folder / left).exists(), "what a writer left that died is deleted"


def test_entries_are_whole_whoever_writes_them(folder: Path) -> None:
    cache = DiskCache("sample", max_bytes=10**6)

    def store(number: int) -> bool:
        cache.store(key(1), {"number": number}, [bytes([number]) * 50_000])
        entry = cache.load(key(1))
        return entry is not None and entry[1] == [bytes([entry[0]["number"]]) * 50_000]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(store, range(64)))


def test_the_folder_is_the_users_own_of_each_platform(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert cache_directory() == folder
    monkeypatch.delenv("DALEMBERT_CACHE_DIR")
    homes = {
        "XDG_CACHE_HOME": "/caches",
        "LOCALAPPDATA": "/local",
        "HOME": "/home/ada",
        "USERPROFILE": "/home/ada",
    }
    for variable, place in homes.items():
        monkeypatch.setenv(variable, place)
    expected = {
        "linux": Path("/caches/dalembert"),
        "darwin": Path("/home/ada/Library/Caches/dalembert"),
        "win32": Path("/local/dalembert/cache"),
    }
    for platform, place in expected.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert cache_directory() == place
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_directory() == Path("/home/ada/.cache/dalembert")
