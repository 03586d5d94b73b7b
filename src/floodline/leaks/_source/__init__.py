"""Reads from source code what assigns, feeds and limits a container."""
