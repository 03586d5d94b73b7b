"""What every store must do, as classes of pytest tests for your own store.

from floodline.testing.store_contract import RowLogContract, StoreContract

class TestMyStore(StoreContract, RowLogContract):
    @pytest.fixture
    def made(self, clock, wall):
        with MyStore(clock=clock, wall=wall) as store:
            yield store
"""

from __future__ import annotations

import pytest

for _module in ("_fixtures", "_row_logs"):
    pytest.register_assert_rewrite(f"{__name__}.{_module}")

from floodline.testing.store_contract._fixtures import Awaited, Clock, Wall  # noqa: E402 - see above
from floodline.testing.store_contract._row_logs import RowLogContract  # noqa: E402 - the same

__all__ = ["Awaited", "Clock", "RowLogContract", "Wall"]
