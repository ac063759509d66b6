"""A model file names other files; it reaches none outside the folders it is allowed."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from dalembert.errors import FileError
from dalembert.formats.resources import MissingResourceError, Resources, read_regular_file


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """package/urdf (the model's folder), package/meshes, other/ (a root), secret/ (never allowed)."""
    names = ("package/urdf/meshes", "package/meshes", "other/arm/meshes", "secret")
    for name in names:
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.stl").write_text(name)
    return {
        "model": tmp_path / "package" / "urdf",
        "package": tmp_path / "package",
        "other": tmp_path / "other",
        "secret": tmp_path / "secret",
    }


def test_relative_names_start_at_the_folder_then_at_the_roots(folders: dict[str, Path]) -> None:
    resources = Resources(folders["model"], [folders["other"]])
    assert resources.resolve("meshes/a.stl", what="mesh") == folders["model"] / "meshes" / "a.stl"
    assert resources.resolve("arm/meshes/a.stl", what="mesh") == folders["other"] / "arm/meshes/a.stl"
    assert resources.resolve("./meshes/../meshes/a.stl", what="mesh") == folders["model"] / "meshes/a.stl"


def test_packages_are_folders_of_that_name(folders: dict[str, Path]) -> None:
    meshes = folders["package"] / "meshes" / "a.stl"
    inside = Resources(folders["model"], [folders["package"]])
    assert inside.resolve("package://package/meshes/a.stl", what="mesh") == meshes
    above = Resources(folders["model"], [folders["package"].parent])
    assert above.resolve("package://package/meshes/a.stl", what="mesh") == meshes
    other = Resources(folders["model"], [folders["other"]])
    assert other.resolve("package://arm/meshes/a.stl", what="mesh") == folders["other"] / "arm/meshes/a.stl"
    trusted = Resources(folders["model"], trusted=True)
    assert trusted.resolve("package://package/meshes/a.stl", what="mesh") == meshes
    with pytest.raises(MissingResourceError, match="packages above and beside the file; name the folder"):
        Resources(folders["model"]).resolve("package://packages/meshes/a.stl", what="mesh")


def test_packages_lie_above_the_file_or_beside_what_lies_above(folders: dict[str, Path]) -> None:
    """As in a workspace: ws/package/urdf/model.urdf names its own package and its neighbors."""
    resources = Resources(folders["model"])
    for uri, found in (
        ("package://package/meshes/a.stl", folders["package"] / "meshes/a.stl"),
        ("package://package/urdf/../meshes/a.stl", folders["package"] / "meshes/a.stl"),
        ("package://other/arm/meshes/a.stl", folders["other"] / "arm/meshes/a.stl"),
        ("package://meshes/a.stl", folders["model"] / "meshes/a.stl"),  # below the file comes first
    ):
        assert resources.resolve(uri, what="mesh") == found
    inner = folders["model"] / "package" / "urdf"  # the nearest folder of the name above the file
    (inner / "meshes").mkdir(parents=True)
    (inner / "meshes" / "a.stl").write_text("inner")
    assert Resources(inner).resolve("package://package/urdf/meshes/a.stl", what="mesh").read_text() == "inner"


def test_packages_of_a_model_file_open_nothing_else(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file chooses the names of its packages: links, `..`, hidden folders and /home are none."""
    above = folders["package"].parent
    (above / ".hidden").mkdir()
    (above / ".hidden" / "a.stl").write_text("hidden")
    (above / "linked").symlink_to(folders["secret"], target_is_directory=True)
    (folders["other"] / "out").symlink_to(folders["secret"], target_is_directory=True)
    resources = Resources(folders["model"])
    with pytest.raises(MissingResourceError):
        resources.resolve("package://.hidden/a.stl", what="mesh")
    for uri in (
        "package://linked/a.stl",
        "package://other/out/a.stl",
        "package://package/../secret/a.stl",
        "package://package/urdf/../../secret/missing.stl",
    ):
        with pytest.raises(FileError, match=r"leads to .*secret"):
            resources.resolve(uri, what="mesh")
    with pytest.raises(FileError, match="control character"):
        resources.resolve("package://package/meshes/a%0a.stl", what="mesh")
    top = Path(folders["model"].parts[1])  # such as tmp
    inside = folders["secret"].relative_to("/" / top)
    with pytest.raises(MissingResourceError):
        resources.resolve(f"package://{top}/{inside}/a.stl", what="mesh")
    is_file = Path.is_file
    monkeypatch.setattr(Path, "is_file", lambda self: self.name == "package.xml" or is_file(self))
    found = resources.resolve(f"package://{top}/{inside}/a.stl", what="mesh")
    assert found == folders["secret"] / "a.stl"


def test_percent_signs_of_an_address_are_decoded(folders: dict[str, Path]) -> None:
    (folders["other"] / "arm" / "a b.stl").write_text("x")
    resources = Resources(folders["model"], [folders["other"]])
    assert resources.resolve("package://arm/a%20b.stl", what="mesh").name == "a b.stl"
    with pytest.raises(FileError, match=r"but files are read below"):
        resources.resolve("package://arm/%2e%2e/%2e%2e/secret/a.stl", what="mesh")


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("package://../secret/a.stl", "names no package"),
        ("package://", "names no package"),
        ("package:///secret/a.stl", "names no package"),
        ("package://arm", "no file in it"),
        ("package://arm//etc/passwd", "absolute path"),
        ("package://arm/../../secret/a.stl", "leads to .*secret"),
        ("../../secret/a.stl", "leads to .*secret"),
        ("../../secret/missing.stl", "leads to .*secret"),
        ("/etc/passwd", "is an absolute path"),
        ("\\\\host\\share\\a.stl", "is an absolute path"),
        ("C:/a.stl", "is an absolute path"),
        ("file:///etc/passwd", "is a file: address"),
        ("file:a.stl", "is a file: address"),
        ("~/a.stl", "home folder"),
        ("~root/a.stl", "home folder"),
    ],
)
def test_names_that_lead_out_are_refused_and_say_how_to_allow_them(
    folders: dict[str, Path], uri: str, words: str
) -> None:
    with pytest.raises(FileError, match=words) as raised:
        Resources(folders["model"], [folders["other"]]).resolve(uri, what='mesh of link "hand"')
    message = str(raised.value)
    assert not isinstance(raised.value, MissingResourceError)
    assert message.startswith(f'mesh of link "hand": "{uri}"')
    assert uri.startswith("package:") or ("roots=[" in message and "trusted=True" in message)


def test_trust_opens_every_folder(folders: dict[str, Path]) -> None:
    secret = folders["secret"] / "a.stl"
    trusted = Resources(folders["model"], trusted=True)
    for uri in (str(secret), f"file://{secret}", "../../secret/a.stl"):
        assert trusted.resolve(uri, what="mesh") == secret


def test_a_root_opens_what_is_below_it_only(folders: dict[str, Path]) -> None:
    resources = Resources(folders["model"], [folders["package"]])
    assert resources.resolve("../meshes/a.stl", what="mesh") == folders["package"] / "meshes" / "a.stl"
    with pytest.raises(FileError, match="leads to"):
        resources.resolve("../../secret/a.stl", what="mesh")


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("scheme", ["http", "https", "HTTP", "ftp"])
def test_nothing_is_fetched_trusted_or_not(
    folders: dict[str, Path], scheme: str, trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", None)
    with pytest.raises(FileError, match="on the network; nothing is fetched"):
        Resources(folders["model"], trusted=trusted).resolve(f"{scheme}://localhost/a.stl", what="mesh")


def test_unknown_schemes_and_impossible_names_are_refused(folders: dict[str, Path]) -> None:
    resources = Resources(folders["model"], trusted=True)
    for uri, words in (
        ("model://arm/a.stl", "unknown scheme"),
        ("data:text/plain,x", "unknown scheme"),
        ("", "is empty"),
        (" ", "is empty"),
        ("a\0.stl", "NUL"),
        ("a" * 5000, "characters"),
    ):
        with pytest.raises(FileError, match=words):
            resources.resolve(uri, what="mesh")
    with pytest.raises(MissingResourceError):
        resources.resolve("a" * 4000, what="mesh")  # longer than any file system takes


def test_symbolic_links_are_followed_before_the_check(folders: dict[str, Path]) -> None:
    (folders["model"] / "link.stl").symlink_to(folders["secret"] / "a.stl")
    (folders["model"] / "linked").symlink_to(folders["secret"], target_is_directory=True)
    (folders["model"] / "inner.stl").symlink_to(folders["model"] / "meshes" / "a.stl")
    (folders["model"] / "ring.stl").symlink_to(folders["model"] / "ring.stl")
    resources = Resources(folders["model"])
    assert resources.resolve("inner.stl", what="mesh") == folders["model"] / "meshes" / "a.stl"
    for uri in ("link.stl", "linked/a.stl"):
        with pytest.raises(FileError, match=r"leads to .*secret"):
            resources.resolve(uri, what="mesh")
        assert Resources(folders["model"], trusted=True).resolve(uri, what="mesh").exists()
    with pytest.raises(MissingResourceError):
        resources.resolve("ring.stl", what="mesh")


@pytest.mark.parametrize("trusted", [False, True])
def test_only_regular_files_are_named_and_read(folders: dict[str, Path], trusted: bool) -> None:
    os.mkfifo(folders["model"] / "pipe.stl")
    resources = Resources(folders["model"], trusted=trusted)
    with pytest.raises(FileError, match="not a regular file"):
        resources.resolve("pipe.stl", what="mesh")
    with pytest.raises(FileError, match="is a folder"):
        resources.resolve("meshes", what="mesh")
    if trusted:
        with pytest.raises(FileError, match="not a regular file"):
            resources.resolve("/dev/zero", what="mesh")


def test_reading_is_bounded_and_never_waits(tmp_path: Path) -> None:
    file = tmp_path / "a.stl"
    file.write_bytes(b"12345")
    assert read_regular_file(file, limit=5) == b"12345"
    with pytest.raises(FileError, match="has 5 bytes; files up to 4 bytes are read"):
        read_regular_file(file, limit=4)
    with pytest.raises(FileError, match="cannot be read: No such file"):
        read_regular_file(tmp_path / "missing", limit=5)
    with pytest.raises(FileError, match=f"nothing in the folder {tmp_path} has such a name"):
        read_regular_file(tmp_path / "missing", limit=5)
    with pytest.raises(FileError, match=r'b.stl cannot be read: No such file or directory; nearest: "a.stl"'):
        read_regular_file(tmp_path / "b.stl", limit=5)
    with pytest.raises(FileError, match=f"the folder {tmp_path / 'meshes'} does not exist"):
        read_regular_file(tmp_path / "meshes" / "fine" / "a.stl", limit=5)
    with pytest.raises(FileError, match="is a folder"):
        read_regular_file(tmp_path, limit=5)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(FileError, match="not a regular file"):
            read_regular_file(path, limit=5)
    with pytest.raises(FileError, match="cannot be read"):
        read_regular_file("a\0b", limit=5)
