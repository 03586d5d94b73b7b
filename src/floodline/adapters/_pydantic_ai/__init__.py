"""How a conversation of Pydantic AI is laid out in a store."""
