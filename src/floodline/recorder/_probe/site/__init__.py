"""The one directory that `floodline run` puts on the path of the watched interpreter."""
