"""PTX is made and assembled on machines without a GPU; its memory, calls and bounds are as asked."""

import json
import platform
import re
import sys

import pytest
from tests.codegen.gpu.assembler import find_ptxas, ptxas
from tests.codegen.gpu.launching import LAYOUTS, source_of
from tests.codegen.gpu.test_host_run import several_large
from tests.codegen.sample_programs import chain_loops, random_straight, wide_output
from tests.codegen.test_rollout import CASES

import dalembert as da
from dalembert.codegen.gpu import (
    ARCHITECTURES,
    GpuInfo,
    Layout,
    emit_gpu,
    from_capability,
    ptx_of,
)
from dalembert.codegen.gpu.gpu_module import gpu_module
from dalembert.errors import ArgumentError, CompileError, DeviceError
from dalembert.tracing.program import Repeat, Straight

LINUX_X86 = sys.platform == "linux" and platform.machine() == "x86_64"


@pytest.fixture
def assembler():
    """The assembler is part of the dev extra on Linux x86-64, where its absence is a failure."""
    if find_ptxas() is None:
        assert not LINUX_X86, "ptxas is missing: pip install -e '.[dev]' brings nvidia-cuda-nvcc"
        pytest.skip("there is no ptxas for this platform")
    return ptxas


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_dynamics_assemble_for_every_architecture(assembler, architecture, bits):
    model = da.models.arm6()
    kernel = da.compile(da.forward_dynamics, model, dtype=f"float{bits}")
    program = kernel._kernels.lower().program
    chosen = ARCHITECTURES[architecture]
    source = emit_gpu(program, bits=bits, architecture=chosen, layout=Layout(block=128, registers=128))
    ptx = ptx_of(source)
    assert f".target {architecture}" in ptx
    made = assembler(ptx, chosen)
    assert made.code[:4] == b"\x7fELF"
    assert 24 <= made.registers <= 128


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("program", [random_straight(3), wide_output(23), chain_loops(1200)])
def test_every_layout_assembles(assembler, program, layout):
    source = source_of(program, 32, LAYOUTS[layout])
    assert assembler(ptx_of(source), ARCHITECTURES["sm_90"]).registers > 0


@pytest.mark.parametrize("layout", ["plain", "no shared memory"])
@pytest.mark.parametrize("case", CASES)
def test_rollouts_assemble(assembler, case, layout):
    program, rollout = CASES[case]
    source = source_of(program, 64, LAYOUTS[layout], rollout)
    assert assembler(ptx_of(source), ARCHITECTURES["sm_90"]).registers > 0


def _structure(layout, bits=32):
    program = random_straight(3)
    source = source_of(program, bits, layout)
    ptx = ptx_of(source)
    kernel = ptx[ptx.index(".entry dalembert_kernel") :]
    return program, source, kernel[: kernel.index("\n}")]


def test_rows_are_read_and_written_once_and_next_to_each_other():
    """Staged: each thread loads and stores as many numbers as a row has, all other traffic is shared."""
    program, source, kernel = _structure(Layout(block=64))
    loads = len(re.findall(r"\bld\.global", kernel))
    stores = len(re.findall(r"\bst\.global", kernel))
    assert loads == sum(spec.size for spec in program.inputs)
    assert stores == sum(spec.size for spec in program.outputs)
    assert len(re.findall(r"\bbar\.sync", kernel)) == 2
    assert ".local" not in kernel
    width = loads + stores
    assert source.info.shared_bytes == (width | 1) * 64 * 4


def test_memory_is_addressed_by_its_own_kind():
    """No generic address: the code generator knows shared, global and local memory apart."""
    for layout in LAYOUTS.values():
        _, _, kernel = _structure(layout)
        assert not re.findall(r"\b(?:ld|st)\.(?:v\d\.)?[bfsu]\d", kernel)


def test_arithmetic_is_rounded_as_written():
    """Each operation has its rounding in its name, which forbids the assembler to fuse what we did not.

    Approximate are only the numbers that quotients and roots of float32 begin with (`test_quotients`).
    """
    for bits in (32, 64):
        _, _, kernel = _structure(Layout(block=64), bits)
        kernel = re.sub(r"\b(?:rcp|rsqrt)\.approx\.ftz\.f32", "", kernel)
        assert re.search(rf"\bfma\.rn\.f{bits}", kernel)
        assert not re.search(rf"\b(?:add|sub|mul|div|sqrt)\.f{bits}", kernel)
        assert ".ftz" not in kernel
        assert ".approx" not in kernel


def test_single_precision_stays_single():
    """In float32 kernels only what is called for huge angles has doubles."""
    _, _, kernel = _structure(Layout(block=64))
    assert ".f64" not in kernel


def test_launch_bounds_are_those_of_the_layout():
    _, source, kernel = _structure(Layout(block=96, registers=80))
    assert ".maxntid 96" in kernel
    assert ".maxnreg 80" in kernel
    assert source.info.block == 96


def test_barriers_keep_the_threads_of_a_block_together():
    _, _, kernel = _structure(Layout(block=64, barriers=5))
    assert len(re.findall(r"\bbar\.sync", kernel)) == 2 + 5


def _pauses(program, barriers):
    """The barriers inside of the arithmetic: so many in straight code; with loops over rows one before each
    statement, and between the parts of an iteration."""
    if not program.has_rows:
        return barriers * sum(isinstance(statement, Straight) for statement in program.statements)
    filled = [item for item in program.statements if isinstance(item, Repeat) or item.stores]
    iterations = [item for item in filled if isinstance(item, Repeat) and item.until is not None]
    return len(filled) + sum(len(item.body) - 1 for item in iterations) if barriers else 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", ["pieces", *CASES])
def test_a_barrier_parts_every_phase_from_the_one_before(case, layout):
    """Other threads write the rows of a sample; on the host, where phases run one after the other, a missing
    barrier would not show. Only the first phase of a block that takes one turn has none."""
    program, rollout = (several_large(20), None) if case == "pieces" else CASES[case]
    source = source_of(program, 64, LAYOUTS[layout], rollout)
    lines = gpu_module(source).partition("define ptx_kernel")[2].split("\n")
    calls = [
        (k, found[1]) for k, line in enumerate(lines) if (found := re.match(r"call void @(\w+)\(", line))
    ]
    assert sorted(name for _, name in calls) == sorted(source.phases)
    bare = [name for k, name in calls if "barrier.cta.sync" not in lines[k - 1]]
    assert bare == ([] if source.info.scratch_bytes else ["load"])
    kernel = ptx_of(source).partition(".entry dalembert_kernel")[2]
    pauses = _pauses(program, LAYOUTS[layout].barriers) if "compute" in source.phases else 0
    assert len(re.findall(r"\bbar\.sync", kernel)) == len(calls) - len(bare) + pauses


def test_slots_go_to_shared_memory_as_far_as_it_reaches():
    _, wide, kernel = _structure(Layout(block=64, values=16, shared=100 * 1024))
    _, narrow, other = _structure(Layout(block=64, values=16, shared=9 * 1024))
    assert len(re.findall(r"\bld\.shared", kernel)) > len(re.findall(r"\bld\.shared", other))
    assert narrow.info.shared_bytes <= 9 * 1024 < wide.info.shared_bytes
    assert "st.local" in other
    assert "st.local" not in kernel


def test_what_a_launch_must_know_survives_json():
    program, rollout = CASES["straight"]
    info = source_of(program, 64, LAYOUTS["direct"], rollout).info
    assert GpuInfo.from_json(json.loads(json.dumps(info.to_json()))) == info
    assert info.outputs[-1][0] == "refused step"


def test_devices_run_the_newest_code_they_can():
    assert from_capability(8, 0).name == "sm_80"
    assert from_capability(8, 9).name == "sm_80"
    assert from_capability(9, 0).name == "sm_90"
    assert from_capability(12, 0).name == "sm_100"
    with pytest.raises(DeviceError, match=r"7\.5.*8\.0"):
        from_capability(7, 5)


def test_wrong_layouts_and_text_are_refused(assembler):
    with pytest.raises(ArgumentError, match="multiple of 32"):
        Layout(block=100)
    with pytest.raises(ArgumentError, match="24 to 255"):
        Layout(registers=300)
    with pytest.raises(ArgumentError, match="32 or 64"):
        emit_gpu(random_straight(1), bits=16, architecture=ARCHITECTURES["sm_90"])
    with pytest.raises(CompileError, match="sm_90"):
        assembler(".version 8.0\n.target sm_90\nnonsense", ARCHITECTURES["sm_90"])
