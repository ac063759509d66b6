"""`dalembert doctor`: report what the library found on this machine, and test its compiler."""

import argparse
import ctypes
import math
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numpy as np

import dalembert as da
from dalembert import codegen
from dalembert.cli.content import say_json
from dalembert.errors import DalembertError
from dalembert.host.disk_cache import cache_directory, cache_writable


def run(options: argparse.Namespace) -> int:
    """Print the findings; return 1 where one of them is a problem, else 0."""
    found = findings()
    problems = [finding for finding in found if finding.remedy]
    if options.json:
        facts = {f.name: f.value for f in found}
        report = {"facts": facts, "problems": {f.name: f.remedy for f in problems}}
        say_json(report)
        return int(bool(problems))
    width = max(len(finding.name) for finding in found)
    for finding in found:
        print(f"{finding.name:<{width}}  {finding.value}")
    print()
    for problem in problems:
        print(f"problem: {problem.name}: {problem.value}. {problem.remedy}")
    if not problems:
        print("Everything works.")
    return int(bool(problems))


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `remedy` is empty unless the fact is a problem."""

    name: str
    value: str
    remedy: str = ""


def findings() -> list[Finding]:
    """Return every fact of the report, in the order printed."""
    llvm_version = ".".join(str(part) for part in llvm.llvm_version_info)
    doubles, singles = codegen.default_lanes("float64"), codegen.default_lanes("float32")
    facts = {
        "dalembert": f"{da.__version__} ({Path(da.__file__).parent})",
        "Python": f"{platform.python_version()} ({sys.executable})",
        "NumPy": np.__version__,
        "llvmlite": f"{llvmlite.__version__} (LLVM {llvm_version})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "CPU": f"{cpu_model()} ({llvm.get_host_cpu_name()} to LLVM)",
        "instructions": codegen.host_level(),
        "lanes": f"{doubles} float64, {singles} float32",
        "threads": f"{da.get_num_threads()} of {cores()} cores",
    }
    found = [Finding(name, value) for name, value in facts.items()]
    return [*found, _cache(), Finding("GPU", ", ".join(_gpus()) or "none seen"), _compiler()]


def _cache() -> Finding:
    folder = cache_directory()
    if not cache_writable():
        return Finding(
            "cache",
            f"{folder} is not writable",
            "Every process compiles anew; set DALEMBERT_CACHE_DIR to a folder of your own.",
        )
    entries = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return Finding("cache", f"{folder}: {len(entries)} files, {sum(entries) / 2**20:.1f} MiB, writable")


def _gpus() -> list[str]:
    """Return the names of the CUDA devices that the driver lists; empty without a driver. Loads only it."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return []
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []
    names = []
    for index in range(count.value):
        name = ctypes.create_string_buffer(256)
        if driver.cuDeviceGetName(name, len(name), index) == 0:
            names.append(name.value.decode(errors="replace"))
    return names


def _compiler() -> Finding:
    """Compile a double pendulum and compare it with the same algorithm run on plain floats."""
    remedy = "Please report it with the whole output of this command."
    model = da.models.double_pendulum()
    q, v, tau = [0.3, -0.7], [0.5, 1.1], [0.2, -0.4]
    try:
        compiled = da.forward_dynamics(model, q, v, tau)
    except DalembertError as error:
        return Finding("self-test", f"compilation failed: {error}", remedy)
    plain = da.algorithms.forward_dynamics(model, q, v, tau)
    if all(math.isclose(x, y, rel_tol=1e-12) for x, y in zip(compiled, plain)):
        return Finding("self-test", "compiled forward dynamics agrees with the same code on plain floats")
    return Finding("self-test", f"compiled {list(compiled)} differs from plain {list(plain)}", remedy)


def machine() -> str:
    """Return one line that names the machine, for the head of a table."""
    return f"{cpu_model()}, {cores()} cores, Python {platform.python_version()}, NumPy {np.__version__}"


def cores() -> int:
    """Return how many processor cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system can bind a process to cores
        return os.cpu_count() or 1


def cpu_model() -> str:
    """Return the processor's name as the operating system gives it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
