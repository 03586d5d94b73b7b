"""How a conversation of Pydantic AI lies in a store."""
