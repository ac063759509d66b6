"""PyTorch tensors in, tensors out, with gradients by our own derivative kernels.

Every function of the library that maps arrays to arrays, and everything that `da.compile` makes, takes
tensors as it takes NumPy arrays: `da.forward_dynamics(model, q, v, tau).sum().backward()`. A call is one node
of autograd's graph, whose backward pass is one kernel for the arguments that require a gradient; that kernel
is a call too, and can be differentiated again. Memory is shared, not copied. `torch.func` (vmap, grad, jvp,
jacrev, jacfwd, hessian) and batches work. Tensors on a GPU are computed there, on PyTorch's current stream,
and so are their gradients.

Gradients by configurations are by the coordinates of q: see `coordinate_gradients`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import pick_dtype
from dalembert.call.cuda.device_arrays import torch_kind
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.gpu_calls import evaluate as evaluate_on_gpu
from dalembert.compiler.gpu_calls import remember, run_known
from dalembert.errors import ArgumentError, DeviceError, DtypeError, MissingExtraError
from dalembert.host.foreign_arrays import is_cuda, require_library
from dalembert.interop.coordinate_gradients import (
    align_batch_axes,
    batch_shape,
    evaluate,
    of_dtype,
    on_arrays,
    pull_back,
    push_forward,
    signature_of,
)
from dalembert.model.model import Model

try:
    import torch
except ImportError as error:
    raise MissingExtraError(
        "da.interop.torch computes with PyTorch, which is not installed; pip install 'dalembert[torch]' or, "
        "without CUDA, install a CPU build of torch as its own site says"
    ) from error

FLOATS: Final = {"float64": torch.float64, "float32": torch.float32}


def function(f: Callable[..., Any], model: Model | None = None, **options: Any) -> Callable[..., Any]:
    """Return a function of tensors alone: `f(model, …)` of the library with its options fixed, or a compiled
    one.

    Lists and NumPy arrays become tensors, so that the result is always a tensor.
    """
    return on_arrays(_tensor_of, f, model, options)


def call(function: CompiledFunction, values: Sequence[object], out: object, check: str | None) -> Any:
    """Call a compiled function of tensors; the results have the form that the function gives them."""
    plain = check in (None, "off") and _without_graph(values)
    if plain and (known := run_known(function, torch_kind(), values, out)) is not None:
        return function._hand_back(known)
    names = signature_of(function).names
    dtype = pick_dtype(list(zip(names, values, strict=True)))
    device = next(
        (value.device for value in values if isinstance(value, torch.Tensor) and is_cuda(value)), None
    )
    tensors = [
        _require_float_tensor(name, value, dtype, device) for name, value in zip(names, values, strict=True)
    ]
    batch_shape(function, [tensor.shape for tensor in tensors])
    chosen = of_dtype(function, dtype)
    if plain and device is not None:
        remember(function, chosen, torch_kind(), values, out)
    if out is not None:
        return _into(chosen, tensors, out, check)
    results = _Call.apply(chosen, check, *tensors)
    return function._hand_back(list(results))


def _without_graph(values: Sequence[Any]) -> bool:
    """Return whether PyTorch tracks nothing of a call: no gradients, no transforms."""
    if torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0:
        return False
    watched = torch.is_grad_enabled()
    for value in values:
        if type(value) is torch.Tensor:
            if watched and value.requires_grad:
                return False
        elif isinstance(value, torch.Tensor):
            return False
    return True


def _into(function: CompiledFunction, tensors: Sequence[Any], out: object, check: str | None) -> Any:
    """Write the results into tensors on a GPU, through which no gradient passes."""
    if not any(map(is_cuda, tensors)):
        raise ArgumentError(
            f"{function.name}: out= takes NumPy arrays, or tensors on a GPU where the arguments are; of "
            "tensors on the CPU the results are new ones"
        )
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise ArgumentError(
            f"{function.name}: out= and arguments that require gradients do not go together; leave one away, "
            "or call it under torch.no_grad()"
        )
    return function._hand_back(evaluate_on_gpu(function, _given(tensors), check, out))


def _given(tensors: Sequence[Any]) -> list[Any]:
    """Return the arguments of a kernel on a GPU: tensors there, and arrays of the host."""
    return [tensor.detach() if is_cuda(tensor) else tensor.detach().numpy() for tensor in tensors]


def alike(array: npt.NDArray[Any], beside: Any) -> Any:
    """Return a constant as a tensor of the float type and on the device of another."""
    return _constant(array).to(beside)


def _laid_out(tensor: Any) -> Any:
    """Return a tensor as kernels read it: zeros have memory, negation is done, rows are adjacent on a GPU."""
    if tensor._is_zerotensor():
        tensor = tensor.clone()
    tensor = tensor.resolve_neg()
    return tensor.contiguous() if is_cuda(tensor) else tensor


def _tensor_of(value: Any) -> Any:
    if isinstance(value, list):
        value = np.asarray(value, np.float64)
    return _constant(value) if isinstance(value, np.ndarray) else value


def _constant(value: Any) -> Any:
    """Return numbers as a tensor; PyTorch shares only writable memory with strides that go forward."""
    return torch.as_tensor(np.require(np.asarray(value), requirements=["C", "W"]))


def _require_float_tensor(name: str, value: Any, dtype: str, device: Any) -> Any:
    """Return a tensor that kernels can read in place: on `device`, or on the CPU if that is None.

    Numbers of the host stay there: a kernel on a GPU keeps its own copy of them.
    """
    require_library(name, value, "torch")
    tensor = value if isinstance(value, torch.Tensor) else _constant(value)
    if tensor.device.type not in ("cpu", "cuda"):
        raise DtypeError(
            f"{name} is on {tensor.device}, but functions are compiled for the CPU and for CUDA; pass "
            f"{name}.cpu(), through which gradients flow back"
        )
    if device is not None and tensor is value and tensor.device != device and tensor.dim():
        raise DeviceError(
            f"{name} is on {tensor.device} and others are on {device}; pass {name}.to({str(device)!r}), "
            "through which gradients flow back"
        )
    if tensor.is_complex() or (tensor.is_floating_point() and tensor.dtype not in FLOATS.values()):
        raise DtypeError(f"{name} is {tensor.dtype}; convert it to torch.float64 or torch.float32")
    if is_cuda(tensor) and tensor.dtype not in FLOATS.values():
        raise DtypeError(f"{name} is {tensor.dtype}, which would be copied; pass {name}.to(torch.{dtype})")
    return tensor.to(FLOATS[dtype])


@final
class _Call(torch.autograd.Function):  # type: ignore[misc]
    """One compiled function as a node: `apply(function, check, *tensors)` gives its results as a tuple."""

    @staticmethod
    def forward(function: CompiledFunction, check: str | None, *tensors: Any) -> tuple[Any, ...]:
        if any(map(is_cuda, tensors)):
            return tuple(evaluate_on_gpu(function, _given(tensors), check))
        arrays = [tensor.detach().numpy() for tensor in tensors]
        return tuple(torch.from_numpy(result) for result in evaluate(function, arrays, check))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.function, ctx.check, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors
        wanted = [k for k, needed in enumerate(ctx.needs_input_grad[2:]) if needed]
        gradients: list[Any] = [None] * len(tensors)
        if wanted:
            # The gradient of a sum is one number, repeated; kernels on a GPU read rows.
            weights = [_laid_out(weight) for weight in cotangents]
            found = pull_back(_caller(ctx.check), ctx.function, tensors, weights, wanted)
            for k, gradient in zip(wanted, found, strict=True):
                gradients[k] = gradient.sum_to_size(tensors[k].shape).to(tensors[k].device)
        return (None, None, *gradients)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors
        wanted = [k for k, tangent in enumerate(tangents[2:]) if tangent is not None]
        given = [tangents[2 + k] for k in wanted]
        changes = [_laid_out(change) for change in given]
        return tuple(push_forward(_caller(ctx.check), ctx.function, tensors, changes, wanted))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], function: Any, check: str | None, *tensors: Any) -> Any:
        def to_front(tensor: Any, dim: int) -> Any:
            return tensor if dim == 0 else _laid_out(tensor.movedim(dim, 0))

        inner = [len(shape) for shape in signature_of(function).shapes]
        results = _Call.apply(function, check, *align_batch_axes(tensors, in_dims[2:], inner, to_front))
        return results, (0,) * len(results)


# Every call of a Function asks for this, and working it out takes as long as all the rest.
_Call.forward.__signature__ = inspect.signature(_Call.forward)  # type: ignore[attr-defined]


def _caller(check: str | None) -> Callable[[CompiledFunction, list[Any]], Sequence[Any]]:
    def apply(function: CompiledFunction, tensors: list[Any]) -> Sequence[Any]:
        results: Sequence[Any] = _Call.apply(function, check, *tensors)
        return results

    return apply
