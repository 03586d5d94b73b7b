"""How a thread of LangGraph lies in a store, and which of its checkpoints stay."""
