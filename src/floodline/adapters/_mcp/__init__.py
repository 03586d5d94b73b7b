"""How a stream of MCP events is laid out in a store."""
