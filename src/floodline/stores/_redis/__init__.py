"""Sessions on a Redis or Valkey server."""
