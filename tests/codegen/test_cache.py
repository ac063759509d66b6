"""The disk cache loads what was stored, survives damage and rivals, and stays private and bounded."""

import subprocess
import sys

import numpy as np
import pytest
from tests.codegen.sample_programs import bits, chain_loops, random_inputs, random_straight, run

from dalembert import codegen
from dalembert.codegen import compile_program, load_kernel
from dalembert.host.disk_cache import cache_directory, cache_writable

PROGRAM = random_straight(11)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(path))
    return path


@pytest.fixture
def compilations(monkeypatch):
    """How many programs are really compiled."""
    counted = []
    original = codegen.compile_object

    def count(*args, **options):
        counted.append(1)
        return original(*args, **options)

    monkeypatch.setattr(codegen, "compile_object", count)
    return counted


def test_the_second_compilation_is_a_load(folder, compilations):
    for program in (PROGRAM, chain_loops(12)):
        arrays = random_inputs(program, 9, "float64")
        first = compile_program(program, extra={"shapes": [[3, 4]]})
        second = compile_program(program)
        assert second.info == first.info
        assert second.extra == {"shapes": [[3, 4]]}
        found, expected = run(second, arrays), run(first, arrays)
        for key, values in expected.items():
            assert np.array_equal(bits(found[key]), bits(values))
    assert len(compilations) == 2


def test_options_are_part_of_the_name(folder, compilations):
    for options in (
        {},
        {"lanes": 1},
        {"dtype": "float32"},
        {"level": "sse2"} if "sse2" in codegen.LEVELS else {},
    ):
        compile_program(PROGRAM, key="same", **options)
    assert len(compilations) == 4
    assert load_kernel("same") is not None
    assert load_kernel("other") is None


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "garbage"])
def test_a_damaged_entry_is_made_anew(folder, compilations, damage):
    compile_program(PROGRAM)
    (path,) = folder.glob("*.kernel")
    content = path.read_bytes()
    middle = len(content) // 2
    damaged = {
        "truncate": content[:middle],
        "flip": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "empty": b"",
        "garbage": b"\xff" * len(content),
    }[damage]
    path.write_bytes(damaged)
    kernel = compile_program(PROGRAM)
    assert len(compilations) == 2
    assert path.read_bytes() == content
    run(kernel, random_inputs(PROGRAM, 3, "float64"))


def test_the_folder_is_private_and_one_that_others_write_to_is_not_used(folder):
    assert cache_directory() == folder
    compile_program(PROGRAM)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert not cache_writable()
    assert load_kernel(PROGRAM.digest()) is None
    folder.chmod(0o700)
    assert load_kernel(PROGRAM.digest()) is not None


def test_a_folder_that_cannot_be_made_costs_nothing_but_time(tmp_path, monkeypatch, compilations):
    file = tmp_path / "file"
    file.write_text("not a folder")
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(file / "below"))
    assert not cache_writable()
    for _ in range(2):
        run(compile_program(PROGRAM), random_inputs(PROGRAM, 3, "float64"))
    assert len(compilations) == 2


def test_processes_at_once_agree(folder):
    code = (
        "import numpy as np; from tests.codegen.sample_programs import *; "
        "from dalembert.codegen import compile_program; p = random_straight(11); "
        "print(run(compile_program(p), random_inputs(p, 5, 'float64'))['first'].tobytes().hex())"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    results = {child.communicate(timeout=60)[0] for child in children}
    assert len(results) == 1
    assert (
        next(iter(results)).strip()
        == run(compile_program(PROGRAM), random_inputs(PROGRAM, 5, "float64"))["first"].tobytes().hex()
    )
