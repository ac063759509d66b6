"""No algorithm and no public function can be added without being enrolled."""

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

from tests.conformance.enrolment import ENROLLED, PUBLIC_METHODS, STRUCTURE

from dalembert import algorithms, textbook
from dalembert.compiler.library import FUNCTIONS

PAGES = (
    "cartesian_tensors", "closed_form_equations", "constrained_equations", "guenter_rose_partials", "handles",
    "lagrange", "local_recursion", "recursive_assembly", "vector_recursion",
)  # fmt: skip
"""The pages of the textbook on generic scalars; those of chapter 11 compute with arrays."""

PARTS = (
    "across_joint", "base_motion", "carried_over", "joint_partials", "loop_handle_joint", "net_force",
    "require_invertible_inertias", "velocity_product_accelerations",
)  # fmt: skip
"""Parts of a recursion that are enrolled within it, and a check of the model."""


def functions_of(package: ModuleType) -> dict[str, Any]:
    """The public functions of a package by name."""
    found = {name: getattr(package, name) for name in package.__all__}
    return {name: value for name, value in found.items() if inspect.isfunction(value)}


def test_every_algorithm_is_enrolled():
    functions = {*functions_of(algorithms), *functions_of(algorithms.loops)}
    functions |= {
        name
        for name, function in functions_of(textbook).items()
        if function.__module__.rpartition(".")[2] in PAGES and name not in PARTS
    }
    covered = {name for entry in ENROLLED if entry.name.startswith("algorithms.") for name in entry.covers}
    enrolled = {name.rpartition(".")[2] for name in (*covered, *STRUCTURE)}
    assert functions - enrolled == set()
    assert not covered & set(STRUCTURE)
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(algorithms.__path__, "dalembert.algorithms.")
    ]
    existing = {name for module in (algorithms, textbook, *modules) for name in dir(module)}
    assert enrolled <= existing


def test_every_public_function_is_enrolled_with_every_method():
    names = [entry.name for entry in ENROLLED]
    assert len(names) == len(set(names))
    covered = {name for entry in ENROLLED if entry.name.startswith("da.") for name in entry.covers}
    assert covered == set(FUNCTIONS)
    for function, method in PUBLIC_METHODS:
        default = next(iter(FUNCTIONS[function].methods))
        assert f"da.{function}-{method}" in names or method == default
