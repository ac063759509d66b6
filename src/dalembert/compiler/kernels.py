"""The kernels of one function: loaded from disk, or traced and compiled when first needed."""

from __future__ import annotations

import _thread
import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from dalembert import codegen
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.lowering import Lowered, Recipe, lower
from dalembert.host.process import renew_after_fork

if TYPE_CHECKING:
    from dalembert.call.cuda.device import Device
    from dalembert.call.cuda.kernel import GpuKernel

STATE_NUMBERS: Final = 25
"""Numbers that a pass over a tree in loops keeps for each body and sample, measured on forward dynamics."""

STATE_GROWTH: Final = {"jacobian": 1, "jvp": 2, "vjp": 4, "hessian_vector": 8}
"""The factor by which a derivative keeps more numbers."""

DIVERGENT_VECTOR_BYTES: Final = 32
"""[bytes] The widest vector for samples that diverge. A block visits the points of all its samples and
iterates as often as the slowest: ANYmal lying on itself takes 34 us a step with 8 lanes, 22 with 4, 23 with
2."""

CACHE_BYTES: Final = 12 << 20
"""Larger states of a tree in loops would go through main memory, which costs more than narrow vectors."""

ANNOUNCE_AFTER_SECONDS: Final = 1.0
"""Compilations that take longer than this [s] are announced on standard error."""

COUNT_EVERY_SECONDS: Final = 1.0
"""Time between two counts of the seconds on a terminal."""


@final
class Kernels:
    """A compiled recipe: a program, its results, a kernel for each width ("scalar", "lanes") and GPU."""

    def __init__(
        self,
        recipe: Recipe,
        dtype: str,
        *,
        results: tuple[ArrayArgument, ...] | None = None,
        rollout: codegen.Rollout | None = None,
    ) -> None:
        """`results`, where they are known beforehand; `rollout`: the kernels take many steps in one call."""
        self.recipe = recipe
        self.dtype = dtype
        self.rollout = rollout
        self._lowered: Lowered | None = None
        self._results = results
        self._kernels: dict[str, codegen.CpuKernel] = {}
        self._gpu_kernels: dict[int, GpuKernel] = {}
        self._lock = threading.RLock()
        renew_after_fork(self)

    @property
    def title(self) -> str:
        """The name with the derivatives: f.vjp[q, v]."""
        parts = (f".{item.kind}[{', '.join(item.arguments)}]" for item in self.recipe.derivatives)
        return self.recipe.name + "".join(parts)

    def lower(self) -> Lowered:
        """Trace the program, once."""
        with self._lock:
            if self._lowered is None:
                self._lowered = lower(self.recipe, self.dtype)
                self._results = self._lowered.results
            return self._lowered

    def drop_program(self) -> None:
        """Give back the memory of the program; what is needed of it again is traced again."""
        with self._lock:
            self._lowered = None

    def results(self) -> tuple[ArrayArgument, ...]:
        """Return names and shapes of the results; those of a library function on disk need no trace."""
        if self._results is None and self._lowered is None:
            for width in ("scalar", "lanes"):
                if (kernel := self._load(width)) is not None:
                    self._kernels.setdefault(width, kernel)
                    break
        return self.lower().results if self._results is None else self._results

    def kernel(self, width: str) -> codegen.CpuKernel:
        """Return the kernel for one sample ("scalar") or for batches ("lanes")."""
        kernel = self._kernels.get(width)
        if kernel is None:
            with self._lock, self._announce_if_slow(width):
                kernel = self._kernels.get(width) or self._load(width)
                kernel = kernel or codegen.compile_program(
                    self.lower().program, key=self.recipe.disk_key, extra=self.extra(), **self._options(width)
                )
                self._kernels[width] = kernel
        return kernel

    def on_gpu(self, device: Device, stream: int = 0) -> GpuKernel:
        """Return the kernel for a GPU. Before one is loaded, deleted kernels are unloaded."""
        kernel = self._gpu_kernels.get(device.ordinal)
        if kernel is None:
            from dalembert.compiler.gpu_calls import compile_gpu  # nothing else needs a GPU

            device.unload_dropped(stream)
            with self._lock, self._announce_if_slow(device.name):
                kernel = self._gpu_kernels.get(device.ordinal) or compile_gpu(self, device)
                self._gpu_kernels[device.ordinal] = kernel
                self._learn_results(kernel.extra)
        return kernel

    def _announce_if_slow(self, target: str) -> contextlib.AbstractContextManager[None]:
        return _announce_slow_compilation(f"compiling {self.title} for {self.recipe.model!r} ({target})")

    def extra(self) -> dict[str, object]:
        """Return the metadata to store with a kernel."""
        return {"results": [[item.name, list(item.shape)] for item in self.lower().results]}

    def _learn_results(self, extra: Mapping[str, Any]) -> None:
        if self._results is None:
            self._results = tuple(ArrayArgument(name, tuple(shape)) for name, shape in extra["results"])

    def _load(self, width: str) -> codegen.CpuKernel | None:
        """Load a function of the library's own from the disk cache, without a trace."""
        if self.recipe.disk_key is None:
            return None
        kernel = codegen.load_kernel(self.recipe.disk_key, **self._options(width))
        if kernel is not None:
            self._learn_results(kernel.extra)
        return kernel

    def _options(self, width: str) -> codegen.Options:
        """Return the options of a kernel; lanes are fewer if the states of a tree would fill the cache, or if
        samples diverge."""
        lanes = 1 if width == "scalar" else codegen.default_lanes(self.dtype)
        if self.recipe.divergent:
            lanes = min(lanes, DIVERGENT_VECTOR_BYTES // np.dtype(self.dtype).itemsize)
        numbers = STATE_NUMBERS * len(self.recipe.model.bodies) if self.recipe.looped else 0
        for derivative in self.recipe.derivatives:
            numbers *= STATE_GROWTH[derivative.kind]
        while lanes > 2 and lanes * numbers * np.dtype(self.dtype).itemsize > CACHE_BYTES:
            lanes //= 2
        return {"dtype": self.dtype, "lanes": lanes, "rollout": self.rollout}


@contextlib.contextmanager
def _announce_slow_compilation(what: str) -> Iterator[None]:
    """Say what takes so long, once it does; on a terminal, the line counts the seconds."""
    start, said, line = time.monotonic(), False, f"dalembert: {what} …"
    live = sys.stderr is not None and sys.stderr.isatty()
    # A lock of no owner, which a forked child can release too, and a thread that needs nothing of this one:
    # so that compiling works in `atexit` handlers, where no thread can be started, and in children.
    done = _thread.allocate_lock()
    done.acquire()

    def say() -> None:
        nonlocal said
        if not done.acquire(timeout=ANNOUNCE_AFTER_SECONDS):
            said = True
            sys.stderr.write(line if live else f"{line}\n")
            while live and not done.acquire(timeout=COUNT_EVERY_SECONDS):
                sys.stderr.write(f"\r{line} {time.monotonic() - start:.0f} s")
                sys.stderr.flush()

    try:
        with contextlib.suppress(RuntimeError):
            _thread.start_new_thread(say, ())
        yield
    finally:
        done.release()
        if said:
            head = f"\r{line}" if live else "dalembert:"
            sys.stderr.write(f"{head} done in {time.monotonic() - start:.1f} s\n")
