"""From a function of a model to a kernel: the only room that sees both the physics and the code generator."""

from dalembert.compiler.execution import CompiledFunction

__all__ = ["CompiledFunction"]
