"""Calls of kernels: arrays become rows, kernels run on a processor or a GPU, rows become arrays."""
