"""Contact and impact: geometry, the laws of Featherstone 2008 chapter 11, compliant surfaces, time steps."""

from dalembert.contact.compliant import (
    CompliantForces,
    CompliantLaw,
    PatchState,
    compliant_forces,
    friction_force,
    patches_after,
    patches_at_rest,
)
from dalembert.contact.compliant_surfaces import (
    Hertz,
    LinearSurface,
    SeriesSpring,
    Surface,
    TwoSurfaces,
    lumped,
    patch_rate,
    relaxed,
)
from dalembert.contact.distances import Distances, GapRates, distances, gap_rates
from dalembert.contact.options import Compliant, Rigid
from dalembert.contact.pairs import ContactPair, pairs_of
from dalembert.contact.rigid import *  # noqa: F403
from dalembert.contact.rigid import __all__ as _rigid

__all__ = [
    "Compliant", "CompliantForces", "CompliantLaw", "ContactPair", "Distances", "GapRates", "Hertz",
    "LinearSurface", "PatchState", "Rigid", "SeriesSpring", "Surface", "TwoSurfaces", "compliant_forces",
    "distances", "friction_force", "gap_rates", "lumped", "pairs_of", "patch_rate", "patches_after",
    "patches_at_rest", "relaxed", *_rigid,
]  # fmt: skip
