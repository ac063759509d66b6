"""Linking of object code into this process, and consistency of LLVM across forks.

llvmlite runs every LLVM function under one lock. A child that is forked while another thread is inside LLVM
would inherit that lock for ever locked, and LLVM's own data half changed. `fork` therefore waits until LLVM
is idle: at most as long as the LLVM function that is running takes (seconds for large kernels), and at most
`MAX_FORK_WAIT_SECONDS`. Should LLVM still be running then, the child is forked without it: kernels that are
loaded run there, anything that needs LLVM raises a CompileError. The same holds for imports: a module of this
library that another thread is importing is waited for, since its import would never end in the child.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, Final, NoReturn, final

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from dalembert.codegen.target import initialize, target_for, target_machine
from dalembert.errors import CompileError
from dalembert.host.forks import renew_after_fork

MAX_FORK_WAIT_SECONDS: Final = 60.0
"""[s] A fork waits no longer for LLVM: ten times the compilation of the largest bundled kernel."""


def load_symbols(
    code: bytes, names: tuple[str, ...], *, called: Sequence[bytes] = ()
) -> tuple[Any, list[int]]:
    """Map the object code of a module, and of others that it calls; return the library that owns it, and the
    addresses of functions.

    All sections of a module stand side by side, so that code reaches its constants by 32-bit offsets however
    scattered the process's memory is; calls to other modules go through stubs. (MCJIT maps sections one by
    one, and aborts where they are too far apart.)
    """
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for more in called:
        builder.add_object_img(more)
    for name in names:
        builder.export_symbol(name)
    with _linking:
        number = next(_library_numbers)
        library = builder.link(_linker(number), f"dalembert {number}")
    return library, [library[name] for name in names]


_linking = threading.RLock()  # a signal handler may call while this thread links
renew_after_fork(sys.modules[__name__], "_linking")
_library_numbers = itertools.count()


LIBRARIES_PER_LINKER: Final = 16
"""Libraries that one linker maps before the next linker is made.

Unloading a library gives back its code, but the linker keeps its record of the library (9 kB in LLVM 20)
until the linker itself ends, which is when the last of its libraries is unloaded. A linker costs 0.9 ms and
125 kB, so that 16 libraries bear 0.06 ms and 8 kB each, and one kernel that lives on holds at most 15
records of dropped ones.
"""


@functools.lru_cache(maxsize=1)
def _linker_of(generation: int) -> Any:
    """Return a linker; on Windows JITLink does not know every relocation."""
    initialize()
    return llvm.create_lljit_compiler(target_machine(target_for(None)), use_jit_link=sys.platform != "win32")


def _linker(number: int) -> Any:
    """Return the linker of a library. A library shares the ownership of its linker, which therefore lives as
    long as the last of its libraries, although only the newest linker is held here."""
    return _linker_of(number // LIBRARIES_PER_LINKER)


@final
class _LostLlvm:
    """The substitute for llvmlite's lock in a child that was forked while LLVM was running."""

    def acquire(self, *_: object) -> NoReturn:
        raise CompileError(
            "this process was forked while another thread of its parent had been compiling for more than "
            f"{MAX_FORK_WAIT_SECONDS:.0f} s, so LLVM cannot be used in it; compile before the fork, or start "
            'processes with multiprocessing.get_context("spawn")'
        )

    def release(self) -> None:
        """Do nothing: it is never acquired."""


@final
class _Forking(threading.local):
    """The lock of llvmlite, while the thread that is forking holds it."""

    held: Any = None


_FORKING: Final = _Forking()


def _llvm_lock() -> Any:
    """Return the holder of llvmlite's lock, which has it as `_lock`, or None if llvmlite has no lock."""
    holder = getattr(llvm.ffi.lib, "_lock", None)
    return holder if hasattr(getattr(holder, "_lock", None), "acquire") else None


def _before_fork() -> None:
    _FORKING.held = None
    _finish_imports()
    holder = _llvm_lock()
    if holder is None:
        return
    latest = time.monotonic() + MAX_FORK_WAIT_SECONDS
    while _FORKING.held is None and (left := latest - time.monotonic()) > 0:
        # An interrupt that comes while this waits cannot leave a hook of `fork`: Python would drop it, and
        # fork all the same.
        with contextlib.suppress(KeyboardInterrupt):
            lock = holder._lock
            if lock.acquire(timeout=left):
                _FORKING.held = lock
    _finish_imports()


def _finish_imports() -> None:
    """Wait until no other thread is importing a module of this library."""
    bootstrap = sys.modules.get("importlib._bootstrap")
    locked = [*getattr(bootstrap, "_module_locks", ())]
    loading = [
        name
        for name, module in sys.modules.copy().items()
        if getattr(getattr(module, "__spec__", None), "_initializing", False)
    ]
    for name in {*locked, *loading}:
        if name.startswith("dalembert."):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def _after_in_parent() -> None:
    lock, _FORKING.held = _FORKING.held, None
    if lock is not None:
        lock.release()


def _after_in_child() -> None:
    if _FORKING.held is not None:
        _after_in_parent()
    elif (holder := _llvm_lock()) is not None:
        holder._lock = _LostLlvm()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


# Scratch memory of a thread: kept from one call to the next.

MAX_KEPT_BYTES: Final = 1 << 26
"""Larger scratch memory is given back after the call: 64 MB a thread is more than any bundled model needs."""


def aligned_buffer(size: int) -> npt.NDArray[np.uint8]:
    """Return uninitialised bytes at an address that is a multiple of 64."""
    raw = np.empty(size + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


@final
class _Scratch(threading.local):
    """Memory of one thread."""

    # One attribute, so that no interrupt can leave the size of one buffer beside the address of another.
    kept: tuple[int, int, object] = (-1, 0, None)

    def take(self, size: int) -> tuple[int, object]:
        """Return the address of `size` bytes, and the object that keeps them alive."""
        kept_size, address, buffer = self.kept
        if size <= kept_size:
            return address, buffer
        fresh = aligned_buffer(size)
        address = int(fresh.ctypes.data)
        if size <= MAX_KEPT_BYTES:
            self.kept = (size, address, fresh)
        return address, fresh


SCRATCH: Final = _Scratch()
