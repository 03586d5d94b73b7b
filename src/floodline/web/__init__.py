"""Shows the state of a recorder (dashboard, report and `top`), and serves sessions over HTTP.

The server needs the extra `web`; the report and `top` do not, so names are imported on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodline._lazy import lazy_names

if TYPE_CHECKING:
    from floodline.web._api import create_app
    from floodline.web._dashboard.app import make_app
    from floodline.web._dashboard.event_stream import Source
    from floodline.web._dashboard.own_process import create_dashboard
    from floodline.web._dashboard.server_thread import Serving, serve
    from floodline.web._report.document import report_document
    from floodline.web._report.render import FORMATS, render_report, write_report
    from floodline.web._terminal.plain_text import snapshot_text

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
    "FORMATS": "_report.render",
    "Serving": "_dashboard.server_thread",
    "Source": "_dashboard.event_stream",
    "create_app": "_api",
    "create_dashboard": "_dashboard.own_process",
    "make_app": "_dashboard.app",
    "render_report": "_report.render",
    "report_document": "_report.document",
    "serve": "_dashboard.server_thread",
    "snapshot_text": "_terminal.plain_text",
    "write_report": "_report.render",
}

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
