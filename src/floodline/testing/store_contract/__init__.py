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

for _module in ("_fixtures", "_records", "_retention", "_concurrency", "_row_logs", "_row_lives"):
    pytest.register_assert_rewrite(f"{__name__}.{_module}")

from floodline.testing.store_contract._concurrency import ConcurrencyContract  # noqa: E402 - above
from floodline.testing.store_contract._fixtures import Awaited, Clock, Wall  # noqa: E402 - above
from floodline.testing.store_contract._records import RecordContract  # noqa: E402 - see above
from floodline.testing.store_contract._retention import RetentionContract  # noqa: E402 - above
from floodline.testing.store_contract._row_lives import RowLifeContract  # noqa: E402 - see above
from floodline.testing.store_contract._row_logs import RowContract  # noqa: E402 - see above


class StoreContract(RecordContract, RetentionContract, ConcurrencyContract):
    """What every store must do, without row logs."""


class RowLogContract(RowContract, RowLifeContract):
    """What a store with row logs must do, on top of `StoreContract`."""


__all__ = ["Awaited", "Clock", "RowLogContract", "StoreContract", "Wall"]
