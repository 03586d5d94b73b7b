"""One front end a language: each reads a file into facts."""
