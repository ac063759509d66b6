"""Code generation for NVIDIA GPUs: PTX through LLVM, from the same schedule as for the CPU."""

from dalembert.codegen.gpu.architectures import ARCHITECTURES, Architecture, from_capability
from dalembert.codegen.gpu.assemble import Assembled, find_ptxas, ptx_of, ptxas
from dalembert.codegen.gpu.choice import choices, default_layout
from dalembert.codegen.gpu.emit import emit_gpu
from dalembert.codegen.gpu.host import HostKernel
from dalembert.codegen.gpu.layout import Layout
from dalembert.codegen.gpu.source import GpuInfo, GpuSource

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
