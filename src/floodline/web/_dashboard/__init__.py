"""The dashboard: its app, the server it runs in, and who may read it."""
