"""Records of contact points, some of which are selected anew in each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.contact.candidates import ABSENT_POINT_GAP
from dalembert.simulation.trajectory import ContactRecord

__all__ = ["contact_record"]

Array: TypeAlias = npt.NDArray[Any]


def contact_record(
    names: Sequence[tuple[str, str]],
    force: Array,
    position: Array,
    gap: Array,
    which: Array,
    name_of: Callable[[int], tuple[str, str]],
) -> ContactRecord:
    """Return the record of the fixed contact points and, after them, of the selected ones.

    `which (…, T, chosen)`: the points that these are, below zero where none is. Each point that was ever
    chosen has a place of its own in the record, with no force and the gap `ABSENT_POINT_GAP` while it was
    not.
    """
    if not which.shape[-1]:
        return ContactRecord(tuple(names), force, position, gap)
    always = len(names)
    ever, places = np.unique(which[which >= 0.0], return_inverse=True)
    found = np.nonzero(which >= 0.0)
    sources = (*found[:-1], found[-1] + always)
    targets = (*found[:-1], places.reshape(-1) + always)
    frames, count = gap.shape[:-1], always + len(ever)
    record = ContactRecord(
        (*names, *(name_of(int(point)) for point in ever)),
        np.zeros((*frames, count, 3)),
        np.zeros((*frames, count, 3)),
        np.full((*frames, count), ABSENT_POINT_GAP),
    )
    for given, kept in ((force, record.force), (position, record.position), (gap, record.gap)):
        every = (slice(None),) * len(frames)
        kept[(*every, slice(always))] = given[(*every, slice(always))]
        kept[targets] = given[sources]
    return record
