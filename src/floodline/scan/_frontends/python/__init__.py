"""The Python front end: from a syntax tree to facts."""
