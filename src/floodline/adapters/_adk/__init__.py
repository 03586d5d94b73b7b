"""How a session of Google's Agent Development Kit lies in a store."""
