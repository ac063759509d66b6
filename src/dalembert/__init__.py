"""Rigid-body dynamics, written once and compiled."""

__version__ = "0.1.0"
