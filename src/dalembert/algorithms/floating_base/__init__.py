"""Bodies that float: equations whose unknown is the acceleration of a free base."""

__all__: list[str] = []
