"""Loop joints and other constraints: their equations and forces, and the closing of loops."""

from dalembert.api.declared import publish
from dalembert.api.loop_closing import close_loops

__all__ = ["close_loops", *publish("constraints", "constraints", "loops")]
