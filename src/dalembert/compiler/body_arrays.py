"""Arrays of a tree too large to unroll, as the current body reads them: its own elements, by tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.errors import TracingError
from dalembert.model.body import Body
from dalembert.model.tree import PerBody
from dalembert.spatial.structure import rebuild
from dalembert.tracing.address import Address
from dalembert.tracing.graph import Graph

__all__ = ["BodyIndex", "BodySlice", "FollowedPlace", "InputTable", "TableOwns", "TableVector"]


@final
@dataclass(frozen=True, slots=True)
class BodySlice:
    """The place in q or v of the current body's joint: `count` entries from its table's offset."""

    table: str
    count: int


@final
@dataclass(frozen=True, slots=True)
class FollowedPlace:
    """The place in q or v of an independent variable that the current body's joint follows."""

    table: str


@final
class BodyIndex(int):
    """The current body, as an index into per-body inputs; its value is the body's kind."""


@final
class InputTable:
    """An input array, read a joint or a body at a time."""

    def __init__(self, graph: Graph, name: str, width: int = 1) -> None:
        self._graph, self._name, self._width = graph, name, width

    def __getitem__(self, place: object) -> Any:
        if isinstance(place, BodySlice):
            return [self._graph.load(Address(self._name, place.table, 1, j)) for j in range(place.count)]
        if isinstance(place, BodyIndex):
            return [self._graph.load(Address(self._name, None, self._width, j)) for j in range(self._width)]
        if isinstance(place, FollowedPlace):
            return self._graph.load(Address(self._name, place.table, 1, 0))
        raise TracingError(
            f"{self._name}[{place!r}]: in a system this large an algorithm reads arrays through its body only"
        )


@final
@dataclass(frozen=True, slots=True)
class TableVector:
    """A result in v order that a loop has already stored in the output array of this name."""

    array: str
    size: int


@final
class TableOwns(PerBody[Any]):
    """The results of a pass: for each kind a template and the nodes that load its leaves in a later loop."""

    __slots__ = ("_templates",)

    def __init__(self, templates: Sequence[tuple[Any, list[Any]]]) -> None:
        super().__init__(())
        self._templates = tuple(templates)

    def __getitem__(self, body: Body | int) -> Any:
        kind = body if isinstance(body, int) else body.index
        if not isinstance(kind, BodyIndex):
            raise TracingError(
                "in a system this large an algorithm visits bodies by passes over the tree only"
            )
        return rebuild(*self._templates[kind])
