"""A forked child compiles and calls at once, whatever the other threads of its parent were doing."""

import importlib
import os
import signal
import sys
import threading
import time

import llvmlite.binding as llvm
import numpy as np
import pytest
from tests.codegen.sample_programs import bits, random_inputs, random_straight, run

import dalembert
from dalembert import codegen
from dalembert.codegen import compile_program, machine_code, set_num_threads
from dalembert.codegen.cpu import threads
from dalembert.compiler.kernels import Kernels
from dalembert.compiler.library import library_recipe
from dalembert.errors import CompileError
from dalembert.host import process

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]

PROGRAM = random_straight(7)
ARRAYS = random_inputs(PROGRAM, 203, "float64")


def in_child(function, *, limit=60.0):
    """Call a function in a forked child; True if it returned, False if it raised, None if it hangs."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            function()
            status = 0
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
        finally:
            os._exit(status)
    end = time.monotonic() + limit
    while not (done := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return None
        time.sleep(0.002)
    return done[1] == 0


class Holding:
    """Another thread that holds a lock for some time."""

    def __init__(self, lock, seconds):
        self._held = threading.Event()
        self._thread = threading.Thread(target=self._hold, args=(lock, seconds))

    def _hold(self, lock, seconds):
        with lock:
            self._held.set()
            time.sleep(seconds)

    def __enter__(self):
        self._thread.start()
        assert self._held.wait(timeout=30.0)

    def __exit__(self, *_):
        self._thread.join(timeout=30.0)


def compile_another(seed=iter(range(1000, 2000))):  # noqa: B008
    """Compile a program that no process has compiled."""
    program = random_straight(next(seed), size=20)
    return run(compile_program(program), random_inputs(program, 3, "float64"))


def test_llvmlite_has_the_lock_that_forks_wait_for():
    assert machine_code._llvm_lock() is llvm.ffi.lib._lock


def test_a_fork_waits_for_llvm():
    with Holding(llvm.ffi.lib._lock, 0.3):
        assert in_child(compile_another)
    compile_another()


def test_the_thread_that_holds_llvm_may_fork():
    with llvm.ffi.lib._lock:
        assert in_child(compile_another)
    compile_another()


def test_a_signal_handler_may_compile_while_its_thread_links():
    with machine_code._linking:
        compile_another()


def test_a_child_without_llvm_says_so_and_runs_what_is_loaded(monkeypatch):
    monkeypatch.setattr(machine_code, "MAX_FORK_WAIT_SECONDS", 0.05)
    kernel = compile_program(PROGRAM)
    expected = run(kernel, ARRAYS)["first"]

    def child():
        assert np.array_equal(bits(run(kernel, ARRAYS)["first"]), bits(expected))
        with pytest.raises(CompileError, match="forked while another thread"):
            compile_another()

    with Holding(llvm.ffi.lib._lock, 0.6):
        assert in_child(child)
    compile_another()


def test_locks_of_the_library_are_free_in_children():
    model = dalembert.models.arm6()
    kernels = Kernels(library_recipe(model, "mass_matrix"), "float64")
    with Holding(kernels._lock, 0.5), Holding(machine_code._linking, 0.5):
        assert in_child(lambda: kernels.kernel("scalar"), limit=30.0)
    owners = [*process._OWNERS["_lock"], *process._OWNERS["_linking"]]
    assert kernels in owners
    assert machine_code in owners


def test_every_lock_of_the_library_is_renewed():
    """Locks of modules and instances: each has its line, or is not shared between threads."""
    folder = os.path.dirname(dalembert.__file__)
    for root, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".py") and name != "process.py":
                with open(os.path.join(root, name), encoding="utf-8") as file:
                    text = file.read()
                made = text.count("threading.Lock()") + text.count("threading.RLock()")
                made += text.count("threading.Condition()")
                assert text.count("renew_after_fork(") >= made, (
                    f"{name} makes a lock that forks may leave locked"
                )


def test_a_child_imports_what_another_thread_was_importing(tmp_path, monkeypatch):
    (tmp_path / "slowly_imported.py").write_text("import time\ntime.sleep(0.5)\nvalue = 5\n")
    monkeypatch.setattr(dalembert, "__path__", [*dalembert.__path__, str(tmp_path)])
    name = "dalembert.slowly_imported"
    importing = threading.Thread(target=importlib.import_module, args=[name])
    importing.start()
    try:
        while name not in sys.modules:
            time.sleep(0.001)
        assert in_child(lambda: importlib.import_module(name).value)
    finally:
        importing.join(timeout=30.0)
        sys.modules.pop(name, None)


def test_a_fork_within_a_call_continues_it_in_both(monkeypatch):
    """As in a signal handler: between two pieces, the child has no helpers and makes its own."""
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    native = threads._native_functions()
    kernel, pids, before = compile_program(PROGRAM), [], codegen.get_num_threads()
    expected = run(kernel, ARRAYS, threads=False)["first"]
    set_num_threads(3)

    def lead(batch, scratch):
        left = native.lead(batch, scratch)
        if left and not pids:
            pids.append(os.fork())
        return left

    try:
        hasty = native._replace(ticks=0, lead=lead)
        monkeypatch.setattr(threads, "_native_functions", lambda: hasty)
        right = np.array_equal(bits(run(kernel, ARRAYS, threads=True)["first"]), bits(expected))
        if pids == [0]:
            os._exit(0 if right else 1)
        assert right
        assert os.waitpid(pids[0], 0)[1] == 0
    finally:
        if pids == [0]:
            os._exit(1)
        set_num_threads(before)
