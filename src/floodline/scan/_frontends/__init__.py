"""One front end per language: each reads a file into facts."""
