"""Contact and impact: geometry, the laws of Featherstone 2008 chapter 11, compliant surfaces, time steps."""

from dalembert.contact.distances import Distances, GapRates, distances, gap_rates
from dalembert.contact.options import Rigid
from dalembert.contact.pairs import ContactPair, pairs_of
from dalembert.contact.rigid import *  # noqa: F403
from dalembert.contact.rigid import __all__ as _rigid

__all__ = ["ContactPair", "Distances", "GapRates", "Rigid", "distances", "gap_rates", "pairs_of", *_rigid]
