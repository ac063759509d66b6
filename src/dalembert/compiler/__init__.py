"""From a function of a model to a kernel: the only room that sees both the physics and the code generator."""
