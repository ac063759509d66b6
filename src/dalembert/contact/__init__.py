"""Contact and impact: geometry, the laws of Featherstone 2008 chapter 11, compliant surfaces, time steps."""

from dalembert.contact.options import Rigid
from dalembert.contact.pairs import ContactPair, pairs_of

__all__ = ["ContactPair", "Rigid", "pairs_of"]
