"""Models to files and back; files that are no models."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import dalembert as da
from dalembert.errors import ArgumentError, FileError, UnknownNameError


@pytest.mark.parametrize("make", [da.models.humanoid, da.models.four_bar, da.models.quadruped])
def test_a_saved_model_comes_back_the_same(tmp_path: Path, make: object) -> None:
    """RBDA-4.6-MODEL: save and load round trip."""
    model = make()  # type: ignore[operator]
    file = tmp_path / "model.json"
    da.save(model, file)
    assert da.load(file) == model
    assert da.load(str(file)).to_json() == model.to_json()
    assert [item.name for item in tmp_path.iterdir()] == ["model.json"]


def test_options_for_other_formats_are_refused_for_a_whole_model(tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    assert da.save(da.models.pendulum(), file) == ()
    with pytest.raises(ArgumentError, match="root and inertia are options for URDF and MJCF"):
        da.load(file, root="floating")
    with pytest.raises(ArgumentError, match="root and inertia are options for URDF and MJCF"):
        da.load(file, inertia="strict")


def test_saving_over_a_file_replaces_it_whole(tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    da.save(da.models.arm6(), file)
    da.save(da.models.pendulum(), file)
    assert da.load(file) == da.models.pendulum()


def test_files_that_are_no_models_are_refused_by_name(tmp_path: Path) -> None:
    def refused(content: bytes | None, words: str) -> None:
        file = tmp_path / "bad.json"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(FileError, match=words) as raised:
            da.load(file)
        assert "bad.json" in str(raised.value)

    refused(None, "cannot be read")
    refused(b"", "is empty")
    refused(b"  \n", "is empty")
    refused(b"<robot/>", "not a saved model")
    refused(b"{", "not a saved model")
    refused(b"\x00\xff\xfe", "not a saved model")
    refused(b"[" * 100_000, "nested too deeply|not a saved model")
    refused(da.models.pendulum().to_json()[:-40].encode(), "not a saved model")


def test_folders_and_devices_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "folder.json"
    folder.mkdir()
    for place in (folder, tmp_path):
        with pytest.raises(FileError, match="is a folder"):
            da.load(place)
        with pytest.raises(FileError, match="is a folder"):
            da.save(da.models.pendulum(), place)
    if hasattr(os, "mkfifo"):
        pipe = tmp_path / "pipe.json"
        os.mkfifo(pipe)
        with pytest.raises(FileError, match="not a regular file"):
            da.load(pipe)


def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    with file.open("wb") as stream:
        stream.truncate(da.formats.MAX_FILE_BYTES + 1)
    with pytest.raises(FileError, match="bytes are read"):
        da.load(file)


def test_an_unknown_ending_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"\.json"):
        da.load(tmp_path / "robot.stl")
    with pytest.raises(UnknownNameError, match=r"\.json"):
        da.save(da.models.pendulum(), tmp_path / "robot.stl")
    with pytest.raises(FileError, match="cannot be written"):
        da.save(da.models.pendulum(), tmp_path / "missing" / "model.json")


def test_a_name_that_is_no_text_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    builder = da.ModelBuilder()
    builder.add_body("arm\ud800", parent="world", joint=da.Revolute(axis=(0, 0, 1)), joint_name="j")
    file = tmp_path / "model.urdf"
    with pytest.raises(FileError, match=r"character that XML cannot hold|not text"):
        da.save(builder.build(), file)
    assert not file.exists()
