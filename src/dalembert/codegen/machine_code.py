"""Machine code: kept on disk between processes (`KERNELS`), and linked into this one, consistently across
forks.

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
import hashlib
import importlib
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, final

import llvmlite.binding as llvm

from dalembert.codegen.target import initialize, parse_module, target_for, target_machine
from dalembert.errors import CompileError
from dalembert.host.disk_cache import DiskCache
from dalembert.host.process import renew_after_fork

KERNELS: Final = DiskCache("kernel", max_bytes=512 * 2**20)
"""The entries of machine code in the cache folder."""


def cache_key(identity: str, **options: object) -> str:
    """Return the name of an entry: a hash of the program, the options, the versions and the processor."""
    facts = {"identity": identity, "options": options, "compiler": _compiler_digest()}
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _compiler_digest() -> str:
    """Return a digest of this package's source, the version of LLVM and the processor."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    features = sorted(llvm.get_host_cpu_features().items())
    digest.update(repr((llvm.llvm_version_info, llvm.get_host_cpu_name(), features, sys.platform)).encode())
    return digest.hexdigest()


# Linking of object code into this process.

MAX_FORK_WAIT_SECONDS: Final = 60.0
"""[s] A fork waits no longer for LLVM: ten times the compilation of the largest bundled kernel."""


def load_helper(name: str, text: str, functions: tuple[str, ...]) -> tuple[Any, list[int]]:
    """Compile LLVM text of the library's own, or take it from the cache; return as `load_symbols` does."""
    key = cache_key(name, text=text)
    entry = KERNELS.load(key)
    if entry is None:
        code = target_machine(target_for(None)).emit_object(parse_module(text))
        KERNELS.store(key, {}, [code])
    else:
        code = entry[1][0]
    return load_symbols(code, functions)


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
        library = builder.link(_linker_of(number // LIBRARIES_PER_LINKER), f"dalembert {number}")
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
    """Return a linker; on Windows JITLink does not know every relocation.

    A library shares the ownership of its linker, which therefore lives as long as the last of its libraries,
    although only the newest linker is held here.
    """
    initialize()
    return llvm.create_lljit_compiler(target_machine(target_for(None)), use_jit_link=sys.platform != "win32")


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
    if _FORKING.held is None and (holder := _llvm_lock()) is not None:
        holder._lock = _LostLlvm()
    _after_in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
