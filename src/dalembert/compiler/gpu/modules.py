"""GPU modules: a program becomes PTX, which the driver links to machine code, cached on disk.

The driver's linker (`cuLink*`) is the assembler that comes with every driver, so no toolkit is needed. What
it makes runs on one architecture, and the next driver may make it better: the disk cache knows it by both.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dalembert.call.cuda.device import Device
from dalembert.call.cuda.kernel import GpuKernel
from dalembert.codegen import Rollout
from dalembert.codegen.gpu import GpuInfo, emit_gpu, from_capability, ptx_of
from dalembert.codegen.machine_code import cache_key, load_entry, store_entry
from dalembert.errors import CompileError
from dalembert.tracing.program import Program

if TYPE_CHECKING:
    from dalembert.compiler.kernels import Kernels

__all__ = ["compile_gpu", "link", "load_gpu", "loaded_kernel"]

BITS: Final = {"float64": 64, "float32": 32}

ERROR_LOG, ERROR_LOG_SIZE = 5, 6
"""CU_JIT_ERROR_LOG_BUFFER and its size."""

LOG_BYTES: Final = 1 << 14
JIT_INPUT_PTX: Final = 1
"""CU_JIT_INPUT_PTX."""


def loaded_kernel(kernels: Kernels, device: Device, stream: int) -> GpuKernel:
    """Return the kernel of a function for a GPU. Before one is loaded, deleted kernels are unloaded."""
    if not kernels.is_loaded(device):
        device.unload_dropped(stream)
    return kernels.on_gpu(device)


def compile_gpu(
    program: Program,
    device: Device,
    *,
    dtype: str,
    name: str,
    key: str | None = None,
    extra: Mapping[str, Any] | None = None,
    rollout: Rollout | None = None,
) -> GpuKernel:
    """Compile a program for a GPU, or load what an earlier process compiled.

    `name` is for errors; `key` names the program in the disk cache, None takes its digest; `extra`, any JSON
    data, is stored with the kernel.
    """
    identity = program.digest() if key is None else key
    kernel = load_gpu(identity, device, dtype=dtype, name=name, rollout=rollout)
    if kernel is not None:
        return kernel
    architecture = from_capability(*device.capability)
    source = emit_gpu(program, bits=BITS[dtype], architecture=architecture, rollout=rollout)
    code = link(ptx_of(source, architecture), device, name)
    description = {"info": source.info.to_json(), "extra": dict(extra or {})}
    store_entry(_entry_name(identity, device, dtype, rollout), description, [code, source.tables])
    return GpuKernel(source.info, code, source.tables, device, name, description["extra"])


def load_gpu(
    key: str, device: Device, *, dtype: str, name: str, rollout: Rollout | None = None
) -> GpuKernel | None:
    """Return the kernel that `compile_gpu` stored under `key` for such a GPU, or None. Needs no program."""
    entry = load_entry(_entry_name(key, device, dtype, rollout))
    if entry is None:
        return None
    description, (code, tables) = entry
    info = GpuInfo.from_json(description["info"])
    return GpuKernel(info, code, tables, device, name, description["extra"])


def _entry_name(identity: str, device: Device, dtype: str, rollout: Rollout | None) -> str:
    return cache_key(
        identity,
        target="cuda",
        dtype=dtype,
        capability=device.capability,
        driver=device.driver.version,
        rollout=rollout,
    )


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
