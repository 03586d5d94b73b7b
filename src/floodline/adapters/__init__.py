"""floodline under the agent frameworks: one module per framework, imported only by who uses it."""

__all__: list[str] = []
