"""Outsized scenes give an answer or an error of the library, in a process that lives.

Each scene runs in a process of its own, since the fault that is looked for ends the process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from tests.stress.amounts import WHOLE, amount

SECONDS = amount(300, 1800)
"""After which a process counts as hung; a loaded machine may need twenty times the processor time."""

SCENE = """
import sys, time
import numpy as np
import dalembert as da

def scene(kind, count):
    builder = da.ModelBuilder()
    builder.add_shape("world", da.shapes.Plane())
    shape = da.shapes.Box((0.1, 0.1, 0.1)) if kind == "boxes" else da.shapes.Sphere(0.05)
    inertia = da.RigidInertia(1.0, (0.0, 0.0, 0.0), 0.002 * np.eye(3))
    for k in range(count):
        builder.add_body(f"body{k}", parent="world", joint=da.Free(), inertia=inertia, shapes=[shape])
    model = builder.build()
    q = model.neutral()
    for k in range(count):
        q[7 * k + 2] = 0.05 + 0.1 * k
    return model, q

def roll(kind, count):
    model, q = scene(kind, count)
    return np.asarray(da.rollout(model, q, np.zeros(model.nv), steps=20, dt=0.005, contact="rigid").q)
"""


def run(code: str, **environment: str) -> str:
    """Run code after that of the scenes in a process of its own, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", SCENE + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


REFUSED = """
start = time.process_time()
try:
    roll(KIND, COUNT)
except da.errors.ProgramSizeError as error:
    print("refused:", error)
print("seconds:", time.process_time() - start)
with open("/proc/self/status") as status:  # ru_maxrss counts the memory of the process that forked this one
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
print("bytes:", 1024 * int(peak))
roll("boxes", 1)
print("alive")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize(("kind", "few", "many"), [("boxes", 5, 800), ("balls", 8, 1000)])
def test_an_outsized_scene_is_refused_in_bounded_time_and_memory(kind, few, many):
    count, limit = (many, {}) if WHOLE else (few, {"DALEMBERT_MAX_OPERATIONS": "5000"})
    printed = run(REFUSED.replace("KIND", repr(kind)).replace("COUNT", str(count)), **limit)
    assert "refused: rollout for <Model" in printed
    assert f"{count} bodies" in printed
    assert "alive" in printed
    facts = dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)
    assert float(facts["seconds"]) < amount(30, 120)
    assert float(facts["bytes"]) < amount(500_000_000, 3_000_000_000)


def test_a_scene_that_is_split_into_functions_rolls_as_one_that_is_not(tmp_path):
    code = """
    from dalembert.codegen.cpu import llvm_function
    llvm_function.SPLIT_OPERATIONS = LIMIT
    print(roll("boxes", COUNT).tobytes().hex())
    """.replace("COUNT", str(amount(2, 5)))
    split = run(code.replace("LIMIT", "1000"), DALEMBERT_CACHE_DIR=str(tmp_path / "split"))
    whole = run(code.replace("LIMIT", "10**9"), DALEMBERT_CACHE_DIR=str(tmp_path / "whole"))
    assert split == whole


def test_an_interrupt_ends_a_long_compilation_within_seconds(tmp_path):
    """At any moment: while the scene is traced, written as text, or compiled module by module."""
    code = """
    import _thread, signal, threading
    from dalembert.codegen.cpu import llvm_function
    from dalembert.compiler import alike_trees
    alike_trees.MIN_ALIKE_VARIABLES = 1000  # alike boxes share their code, which takes half a second
    signal.signal(signal.SIGINT, signal.default_int_handler)
    llvm_function.SPLIT_OPERATIONS = 1000
    for part in range(TRIALS):
        after = 0.5 + part
        begun = []
        def interrupt():
            begun.append(time.process_time())
            _thread.interrupt_main()
        timer = threading.Timer(after, interrupt)
        timer.start()
        try:
            roll("boxes", 16)
            print("not interrupted")
        except KeyboardInterrupt:
            print("late:", time.process_time() - begun[0])
        timer.cancel()
    roll("boxes", 1)
    print("alive")
    """.replace("TRIALS", str(amount(2, 12)))
    printed = run(code, DALEMBERT_CACHE_DIR=str(tmp_path))
    assert "alive" in printed
    delays = [float(line.split(": ")[1]) for line in printed.splitlines() if line.startswith("late")]
    assert delays, printed
    assert max(delays) < 5.0


def test_boxes_in_a_stack_give_an_answer(tmp_path):
    code = f'print(bool(np.isfinite(roll("boxes", {amount(10, 100)})).all()))'
    assert "True" in run(code, DALEMBERT_CACHE_DIR=str(tmp_path))


@pytest.mark.skipif(not WHOLE, reason="two minutes of LLVM; make stress")
def test_llvm_still_has_the_limit_that_functions_are_kept_below():
    """A loop of 2^21 machine instructions ends the process, where LLVM is built with assertions."""
    code = """
    import llvmlite.binding as llvm
    llvm.initialize_native_target(); llvm.initialize_native_asmprinter()
    lines = ["define i64 @f(ptr %p, i64 %n) {", "entry:", "%c = icmp sgt i64 %n, 0", "br label %b0", "b0:"]
    lines.append("%i = phi i64 [ 0, %entry ], [ %j, %tail ]")
    for k in range(1, 2097):
        lines += ["store volatile i64 7, ptr %p, align 8"] * 1000
        lines += [f"br i1 %c, label %b{k}, label %never", f"b{k}:"]
    lines += ["br label %tail", "tail:", "%j = add i64 %i, 1", "%m = icmp slt i64 %j, %n"]
    lines += ["br i1 %m, label %b0, label %never", "never:", "ret i64 0", "}"]
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(opt=1, reloc="pic")
    machine.emit_object(llvm.parse_assembly("\\n".join(lines)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0 or "Defs must be sorted and unique" in done.stderr
