"""The equations K(q) a = k of loop joints and of constraints that users define."""

__all__: list[str] = []
