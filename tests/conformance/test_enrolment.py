"""No algorithm and no public function can be added without being enrolled."""

import importlib
import inspect
import pkgutil

from tests.conformance.enrolment import ENROLLED, PUBLIC_METHODS, STRUCTURE

from dalembert import algorithms
from dalembert.compiler.library import FUNCTIONS


def test_every_algorithm_is_enrolled():
    functions = {name for name in algorithms.__all__ if inspect.isfunction(getattr(algorithms, name))}
    for module in pkgutil.iter_modules(algorithms.__path__):
        if module.ispkg:
            package = importlib.import_module(f"dalembert.algorithms.{module.name}")
            functions |= {
                f"{module.name}.{name}"
                for name in package.__all__
                if inspect.isfunction(getattr(package, name))
            }
    covered = {name for entry in ENROLLED if entry.name.startswith("algorithms.") for name in entry.covers}
    assert functions - covered - set(STRUCTURE) == set()
    assert set(STRUCTURE) <= functions
    assert not covered & set(STRUCTURE)


def test_every_public_function_is_enrolled_with_every_method():
    names = [entry.name for entry in ENROLLED]
    assert len(names) == len(set(names))
    covered = {name for entry in ENROLLED if entry.name.startswith("da.") for name in entry.covers}
    assert covered == set(FUNCTIONS)
    for function, method in PUBLIC_METHODS:
        default = next(iter(FUNCTIONS[function].methods))
        assert f"da.{function}-{method}" in names or method == default
