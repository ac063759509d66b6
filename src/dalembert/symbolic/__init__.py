"""Equations of motion as formulas (needs SymPy, the extra `symbolic`).

The algorithms of `dalembert.algorithms` run on SymPy's symbols as on any other scalars; what they return is
brought into the form in which textbooks print it. SymPy is imported at the first call.
"""

from dalembert.symbolic.equations import EquationsOfMotion, equations_of_motion

__all__ = ["EquationsOfMotion", "equations_of_motion"]
