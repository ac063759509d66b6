"""Programs to kernels for NVIDIA GPUs: PTX through LLVM, from the same schedule as for the CPU."""
