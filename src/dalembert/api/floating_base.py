"""Systems with a free root that carries all other bodies."""

from dalembert.api.declared import publish
from dalembert.api.records import FloatingBaseEquations

__all__ = ["FloatingBaseEquations", *publish("floating_base", "floating_base")]
