"""Sessions over HTTP: the Conversations API that OpenAI's clients speak, on any store.

Read downwards: `_items` says what may be appended, `_log` how it is kept, `_http` how it is asked
for. What listens, forks and drains is `floodline.web`, which needs the same extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodline._lazy import lazy_names

if TYPE_CHECKING:
    from floodline._service._app import create_app, make_service
    from floodline._service._limits import Limits
    from floodline._service._tenants import Tenants

__all__ = ["Limits", "Tenants", "create_app", "make_service"]

_HOMES = {
    "Limits": "_limits",
    "Tenants": "_tenants",
    "create_app": "_app",
    "make_service": "_app",
}

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
