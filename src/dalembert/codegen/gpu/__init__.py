"""Code generation for NVIDIA GPUs: PTX through LLVM, from the same schedule as for the CPU."""

from dalembert.codegen.gpu.assemble import Assembled, HostKernel, find_ptxas, ptx_of, ptxas
from dalembert.codegen.gpu.choice import choices, default_layout
from dalembert.codegen.gpu.gpu_function import emit_gpu
from dalembert.codegen.gpu.launch import (
    ARCHITECTURES,
    Architecture,
    GpuInfo,
    GpuSource,
    Layout,
    from_capability,
)

__all__ = [
    "ARCHITECTURES",
    "Architecture",
    "Assembled",
    "GpuInfo",
    "GpuSource",
    "HostKernel",
    "Layout",
    "choices",
    "default_layout",
    "emit_gpu",
    "find_ptxas",
    "from_capability",
    "ptx_of",
    "ptxas",
]
