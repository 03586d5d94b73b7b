"""How states become bytes: codec, envelope and state types."""
