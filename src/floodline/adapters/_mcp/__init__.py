"""How a stream of MCP events lies in a store."""
