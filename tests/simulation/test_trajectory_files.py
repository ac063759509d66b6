"""Trajectory files: sizes are compared before anything is unpacked, and what `save` wrote `load` reads."""

from __future__ import annotations

import io
import json
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import FileError
from dalembert.formats import npz

MEMORY_BYTES = 100_000_000
SECONDS = 0.1


def saved(path: Path, **changes: np.ndarray[Any, Any]) -> Path:
    model = da.models.double_pendulum()
    q = np.random.default_rng(0).normal(size=(5, 2))
    da.Trajectory(model, np.arange(5.0), q, q, q[1:], observed={"energy": q[:, 0]}).save(path)
    return path


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path: Path, content: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in content.items():
            archive.writestr(name, member)
    return path


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def zeros_npy(shape: tuple[int, ...], archive: zipfile.ZipFile, name: str) -> None:
    """Write an array of zeros without having it."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with archive.open(name, "w", force_zip64=True) as member:
        member.write(header.getvalue())
        left, piece = 8 * int(np.prod(shape)), bytes(2**22)
        while left:
            left -= member.write(piece[: min(left, len(piece))])


def refused_soon(path: Path, words: str) -> None:
    tracemalloc.start()
    start = time.perf_counter()
    try:
        with pytest.raises(FileError, match=words):
            da.Trajectory.load(path)
        seconds, memory = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert seconds < SECONDS
    assert memory < MEMORY_BYTES


@pytest.mark.parametrize("member", ["q.npy", "other.npy", "observed energy.npy", "head.npy"])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, member: str) -> None:
    """300 MB in 300 kB: in an array, in one that the head does not name, in the head."""
    content = members(saved(tmp_path / "a.npz"))
    content.pop(member, None)
    with zipfile.ZipFile(tmp_path / "b.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, item in content.items():
            archive.writestr(name, item)
        zeros_npy((150, 125_000, 2), archive, member)
    assert (tmp_path / "b.npz").stat().st_size < 400_000
    da.Trajectory.load(saved(tmp_path / "a.npz"))  # what is imported at the first call is not the bomb's
    refused_soon(tmp_path / "b.npz", "would unpack to 300")


def test_members_that_the_head_does_not_name_are_refused(tmp_path: Path) -> None:
    content = members(saved(tmp_path / "a.npz"))
    refused_soon(written(tmp_path / "b.npz", content | {"other.npy": npy(np.zeros(3))}), "'other'")
    refused_soon(written(tmp_path / "b.npz", content | {"../x": b""}), "'../x'")
    del content["v.npy"]
    refused_soon(written(tmp_path / "b.npz", content), 'holds no array "v"')


def header(text: str) -> Callable[[bytes], bytes]:
    def changed(_: bytes) -> bytes:
        line = text.encode().ljust(117) + b"\n"
        return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line + bytes(80)

    return changed


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "objects": (header("{'descr': '|O', 'fortran_order': False, 'shape': (10,), }"), "holds object"),
    "records": (header("{'descr': [('a','<f8')], 'fortran_order': False, 'shape': (10,), }"), "not numbers"),
    "complex": (header("{'descr': '<c16', 'fortran_order': False, 'shape': (5,), }"), "complex128"),
    "half": (header("{'descr': '<f2', 'fortran_order': False, 'shape': (40,), }"), "float16"),
    "texts": (header("{'descr': '<U20', 'fortran_order': False, 'shape': (1,), }"), "not numbers"),
    "times": (header("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (10,), }"), "not numbers"),
    "huge": (header("{'descr': '<f8', 'fortran_order': False, 'shape': (10**15, 2), }"), "damaged"),
    "huge shape": (
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999999,2), }"),
        "holds",
    ),
    "negative": (header("{'descr': '<f8', 'fortran_order': False, 'shape': (-5,-2), }"), "damaged"),
    "program": (header("{'descr': __import__('os'), 'fortran_order': False, 'shape': (10,), }"), "damaged"),
    "truncated": (lambda member: member[:-8], "has the shape"),
    "longer": (lambda member: member + b"x", "has the shape"),
    "empty": (lambda _: b"", "damaged"),
    "other shape": (lambda _: npy(np.zeros((5, 3))), "has the shape"),
    "one number": (lambda _: npy(np.array(1.0)), "has the shape"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_arrays_that_are_not_what_they_promise_are_refused(tmp_path: Path, name: str) -> None:
    damage, words = DAMAGES[name]
    content = members(saved(tmp_path / "a.npz"))
    refused_soon(written(tmp_path / "b.npz", content | {"q.npy": damage(content["q.npy"])}), words)


def test_heads_of_other_types_are_refused(tmp_path: Path) -> None:
    content = members(saved(tmp_path / "a.npz"))
    head = json.loads(str(np.load(io.BytesIO(content["head.npy"]))))
    others: list[dict[str, Any]] = [
        {"observed": "energy"}, {"observed": [1]}, {"observed": ["energy", "energy"]}, {"contacts": [["a"]]},
        {"contacts": 3}, {"interrupted": 1}, {"parameters": {"x": 1}}, {"parameters": ["none.such"]},
        {"model": {}}, {"model": "{}"}, {"model": "[" * 5000}, {"format": None}, {"format": [[]]},
    ]  # fmt: skip
    for change in others:
        content["head.npy"] = npy(np.array(json.dumps(head | change)))
        refused_soon(written(tmp_path / "b.npz", content), r"b\.npz")
    for text in ("", "[]", "3", "{", "[" * 100_000, '{"format": NaN}'):
        content["head.npy"] = npy(np.array(text))
        refused_soon(written(tmp_path / "b.npz", content), r"b\.npz")


def test_lists_of_many_members_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        for number in range(30_000):
            archive.writestr(str(number), b"")
    refused_soon(tmp_path / "b.npz", "list of members")


def test_pipes_and_folders_are_not_read(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="folder"):
        da.Trajectory.load(tmp_path)


def test_what_is_at_rest_is_saved_so_that_it_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros pack 1000 times smaller, as bombs do."""
    model = da.models.double_pendulum()
    q = np.zeros((40, 1000, 2))
    trajectory = da.Trajectory(model, np.arange(1000.0), q, q, q[:, 1:])
    monkeypatch.setattr("dalembert.simulation.trajectory.SMALL_BYTES", 10_000)
    monkeypatch.setattr(npz, "SMALL_BYTES", 10_000)
    trajectory.save(tmp_path / "a.npz")
    back = da.Trajectory.load(tmp_path / "a.npz")
    np.testing.assert_array_equal(back.q, q)
    assert back.model == model


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_other_programs_come_back(tmp_path: Path, dtype: str, order: str) -> None:
    content = members(saved(tmp_path / "a.npz"))
    q = np.load(io.BytesIO(content["q.npy"]))
    content["q.npy"] = npy(np.array(q, dtype, order=order))
    back = da.Trajectory.load(written(tmp_path / "b.npz", content))
    np.testing.assert_array_equal(back.q, q.astype(dtype))
    assert back.q.dtype.isnative
