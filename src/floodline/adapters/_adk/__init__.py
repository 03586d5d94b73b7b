"""How a session of Google's Agent Development Kit is laid out in a store."""
