"""The algorithms, once each, as pure functions on generic scalars: floats, NumPy arrays, traced or SymPy expressions.

`f(tree, q, v, …)` takes sequences of scalars and returns lists of scalars or spatial values. `dalembert.api` compiles them.
"""

from __future__ import annotations
