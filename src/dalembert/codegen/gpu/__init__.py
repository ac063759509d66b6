"""Code generation for NVIDIA GPUs: PTX through LLVM, from the same schedule as for the CPU."""

from dalembert.codegen.gpu.gpu_function import default_layout, emit_gpu
from dalembert.codegen.gpu.gpu_module import ptx_of
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
    "GpuInfo",
    "GpuSource",
    "Layout",
    "default_layout",
    "emit_gpu",
    "from_capability",
    "ptx_of",
]
