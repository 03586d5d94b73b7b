"""How a thread of LangGraph is laid out in a store, and which of its checkpoints stay."""
