"""Shows the state of a recorder (dashboard, report and `top`), and serves sessions over HTTP.

The server needs the extra `web`; the report and `top` do not, so names are imported on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodline._lazy import lazy_names

if TYPE_CHECKING:
    from floodline.web._api import create_app
    from floodline.web._app import make_app
    from floodline.web._event_stream import Source
    from floodline.web._own_process import create_dashboard
    from floodline.web._plain_text import snapshot_text
    from floodline.web._report import FORMATS, render_report, write_report
    from floodline.web._report_document import report_document
    from floodline.web._serve import Serving, serve

__all__ = [
    "FORMATS",
    "Serving",
    "Source",
    "create_app",
    "create_dashboard",
    "make_app",
    "render_report",
    "report_document",
    "serve",
    "snapshot_text",
    "write_report",
]

_HOMES = {
    "FORMATS": "_report",
    "Serving": "_serve",
    "Source": "_event_stream",
    "create_app": "_api",
    "create_dashboard": "_own_process",
    "make_app": "_app",
    "render_report": "_report",
    "report_document": "_report_document",
    "serve": "_serve",
    "snapshot_text": "_plain_text",
    "write_report": "_report",
}

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
