"""Conversions between generalized and maximal coordinates, in which every body has six coordinates."""

from dalembert.api.declared import publish

__all__ = publish("cartesian", "cartesian", "inverse_dynamics")
