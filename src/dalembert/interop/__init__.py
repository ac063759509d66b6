"""Bridges to other engines. Importing this package loads none of them."""

from dalembert.interop.pinocchio_bridge import PinocchioBridge, from_pinocchio

__all__ = ["PinocchioBridge", "from_pinocchio"]
