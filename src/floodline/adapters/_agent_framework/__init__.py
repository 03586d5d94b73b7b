"""How a history of the Agent Framework is laid out in a store."""
