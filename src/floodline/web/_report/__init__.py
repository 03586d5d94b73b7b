"""The report of a recording, as HTML, JSON or Markdown."""
