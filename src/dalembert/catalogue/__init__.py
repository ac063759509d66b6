"""The library's own functions, one line each: which algorithm, of which arrays, by which methods."""

from __future__ import annotations

from typing import Final

from dalembert.catalogue.cartesian import CARTESIAN
from dalembert.catalogue.control import CONTROL
from dalembert.catalogue.entry import LibraryFunction
from dalembert.catalogue.geometry import GEOMETRY
from dalembert.catalogue.hybrid import HYBRID
from dalembert.catalogue.loops import LOOPS
from dalembert.catalogue.trees import TREES

__all__ = ["FUNCTIONS", "LibraryFunction"]

FUNCTIONS: Final[dict[str, LibraryFunction]] = {
    **TREES,
    **LOOPS,
    **HYBRID,
    **CARTESIAN,
    **GEOMETRY,
    **CONTROL,
}
