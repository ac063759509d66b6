"""PyTorch and JAX by the same names: what the tests of every function ask of either."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, Final, final

import numpy as np

import dalembert as da

Array = np.ndarray
Function = Callable[..., tuple[Any, ...]]
"""A function of arrays of a library that gives a tuple of them."""


@final
class Torch:
    """Autograd for gradients, `torch.func` for changes and vmap."""

    def __init__(self) -> None:
        import torch

        self.torch, self.bridge = torch, da.interop.torch

    def array(self, x: Array) -> Any:
        return self.torch.tensor(x)

    def vjp(self, f: Function, arrays: Sequence[Array], weights: Sequence[Array]) -> list[Any]:
        given = [self.array(x).requires_grad_() for x in arrays]
        total = sum((self.array(w) * result).sum() for w, result in zip(weights, f(*given), strict=True))
        return list(self.torch.autograd.grad(total, given))

    def vmapped_vjp(self, f: Function, arrays: Sequence[Array], weights: Sequence[Array]) -> list[Any]:
        def gradients(given: Any, cotangents: Any) -> Any:
            return self.torch.func.vjp(f, *given)[1](cotangents)

        rows = tuple(map(self.array, arrays)), tuple(map(self.array, weights))
        return list(self.torch.func.vmap(gradients)(*rows))

    def jvp(self, f: Function, arrays: Sequence[Array], changes: Sequence[Array]) -> list[Any]:
        return list(
            self.torch.func.jvp(f, tuple(map(self.array, arrays)), tuple(map(self.array, changes)))[1]
        )

    def check_gradients(self, f: Function, arrays: Sequence[Array]) -> None:
        given = [self.array(x).requires_grad_() for x in arrays]
        assert self.torch.autograd.gradcheck(f, given, check_forward_ad=True, fast_mode=True)

    def check_second_gradients(self, f: Function, arrays: Sequence[Array]) -> None:
        given = [self.array(x).requires_grad_() for x in arrays]
        assert self.torch.autograd.gradgradcheck(f, given)


@final
class Jax:
    """Gradients by rows inside `jit`."""

    def __init__(self) -> None:
        import jax

        self.jax, self.bridge = jax, da.interop.jax

    def array(self, x: Array) -> Any:
        return self.jax.numpy.asarray(x)

    def vjp(self, f: Function, arrays: Sequence[Array], weights: Sequence[Array]) -> list[Any]:
        return list(self.jax.vjp(f, *map(self.array, arrays))[1](tuple(map(self.array, weights))))

    def vmapped_vjp(self, f: Function, arrays: Sequence[Array], weights: Sequence[Array]) -> list[Any]:
        def gradients(given: Any, cotangents: Any) -> Any:
            return self.jax.vjp(f, *given)[1](cotangents)

        return list(self.jax.jit(self.jax.vmap(gradients))(tuple(arrays), tuple(weights)))

    def jvp(self, f: Function, arrays: Sequence[Array], changes: Sequence[Array]) -> list[Any]:
        return list(self.jax.jvp(f, tuple(map(self.array, arrays)), tuple(map(self.array, changes)))[1])

    def check_gradients(self, f: Function, arrays: Sequence[Array]) -> None:
        from jax.test_util import check_grads

        check_grads(f, tuple(map(self.array, arrays)), order=1, rtol=1e-5, atol=1e-5)

    def check_second_gradients(self, f: Function, arrays: Sequence[Array]) -> None:
        from jax.test_util import check_grads

        check_grads(f, tuple(map(self.array, arrays)), order=2, rtol=1e-4, atol=1e-4)


LIBRARIES: Final = {"torch": Torch, "jax": Jax}
MISSING: Final = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
