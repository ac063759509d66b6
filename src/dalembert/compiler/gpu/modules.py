"""GPU modules: a program becomes PTX, which the driver links to machine code, cached on disk.

The driver's linker (`cuLink*`) is the assembler that comes with every driver, so no toolkit is needed. What
it makes runs on one architecture, and the next driver may make it better: the disk cache knows it by both.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

from dalembert.call.cuda.device import Device
from dalembert.call.cuda.kernel import GpuKernel
from dalembert.codegen.gpu import GpuInfo, emit_gpu, from_capability, ptx_of
from dalembert.codegen.machine_code import cache_key, load_entry, store_entry
from dalembert.errors import CompileError

if TYPE_CHECKING:
    from dalembert.compiler.kernels import Kernels

BITS: Final = {"float64": 64, "float32": 32}

ERROR_LOG, ERROR_LOG_SIZE = 5, 6
"""CU_JIT_ERROR_LOG_BUFFER and its size."""

LOG_BYTES: Final = 1 << 14
JIT_INPUT_PTX: Final = 1
"""CU_JIT_INPUT_PTX."""


def compile_gpu(kernels: Kernels, device: Device) -> GpuKernel:
    """Compile a function for a GPU, or load what an earlier process compiled, which needs no trace where the
    function has a name in the disk cache."""
    dtype, rollout = kernels.dtype, kernels.rollout
    entry_name = cache_key(
        kernels.recipe.disk_key or kernels.lower().program.digest(),
        target="cuda",
        dtype=dtype,
        capability=device.capability,
        driver=device.driver.version,
        rollout=rollout,
    )
    entry = load_entry(entry_name)
    if entry is not None:
        description, (code, tables) = entry
        info = GpuInfo.from_json(description["info"])
    else:
        architecture = from_capability(*device.capability)
        source = emit_gpu(
            kernels.lower().program, bits=BITS[dtype], architecture=architecture, rollout=rollout
        )
        info, tables = source.info, source.tables
        code = link(ptx_of(source, architecture), device, kernels.title)
        description = {"info": info.to_json(), "extra": kernels.extra()}
        store_entry(entry_name, description, [code, tables])
    return GpuKernel(info, code, tables, device, kernels.title, description["extra"])


def link(ptx: str, device: Device, name: str) -> bytes:
    """Link PTX to machine code of a GPU, by the driver's own linker."""
    log = ctypes.create_string_buffer(LOG_BYTES)
    options = (ctypes.c_int * 2)(ERROR_LOG, ERROR_LOG_SIZE)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
    text = ptx.encode() + b"\0"
    driver = device.driver
    with device.current():
        found = ctypes.c_void_p()
        driver("cuLinkCreate_v2", len(options), options, values, ctypes.byref(found), doing=name)
        linker = found.value
        try:
            status = driver.status(
                "cuLinkAddData_v2", linker, JIT_INPUT_PTX, text, len(text), b"dalembert", 0, None, None
            )
            code, size = ctypes.c_void_p(), ctypes.c_size_t()
            status = status or driver.status("cuLinkComplete", linker, ctypes.byref(code), ctypes.byref(size))
            if status:
                said = log.value.decode(errors="replace").strip()
                raise CompileError(
                    f"{name}: {device.name} refused the kernel ({driver.describe(status)})"
                    f"{': ' if said else ''}{said}"
                )
            return ctypes.string_at(code.value or 0, size.value)
        finally:
            driver("cuLinkDestroy", linker)
