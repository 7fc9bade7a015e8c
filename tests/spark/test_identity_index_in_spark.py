"""The index of identities through runs of the batch layer."""

import shutil
from typing import Any

import pytest
from deltalake import DeltaTable

from spark_jobs.storage import tables
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark


def order(number: int) -> dict[str, Any]:
    return event("order_placed", number)


def test_an_index_that_is_not_there_is_made_of_the_facts(lake: Lake) -> None:
    """As after an upgrade: the next run knows the identities of all earlier facts."""
    lake.use("orders_by_day")
    lake.land([order(1), order(2)])
    lake.run("r1")
    shutil.rmtree(tables.path(tables.IDENTITIES))
    lake.land([order(2), order(3)])
    lake.run("r2")
    assert lake.rows(f"SELECT lsn, offset FROM {tables.DUPLICATES}") == [(2, 2)]
    index = DeltaTable(tables.path(tables.IDENTITIES)).to_pyarrow_table()
    assert sorted(index["lsn"].to_pylist()) == [1, 1, 2]
