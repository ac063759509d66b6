"""Kernels on NVIDIA GPUs: the driver, modules, arrays of other libraries, launches."""
