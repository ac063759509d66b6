"""The geometry of configuration space: M(q) as a metric, its connection, its geodesics, Hamilton's form."""

from dalembert.api.declared import publish
from dalembert.api.geodesics import covariant_derivative, geodesic, parallel_transport

__all__ = [
    "covariant_derivative",
    "geodesic",
    "parallel_transport",
    *publish("geometry", "coriolis", "geometry"),
]
