"""The oracle over every flight of the year: figures that others have published, or that pandas finds."""

from collections import Counter
from datetime import date
from functools import cache

import pyarrow as pa
import pytest

from spark_jobs.sample.oracle.answers import Oracle
from spark_jobs.sample.producer import Sent
from spark_jobs.sample.producer_ledger import table_of
from spark_jobs.sample.sources import nycflights


@cache
def year() -> Oracle:
    """Every flight, as the producer ledger has it."""
    offsets: Counter[str] = Counter()
    tables_ = []
    for block in nycflights.blocks():
        tables_.append(table_of([Sent(block, 0, offsets[block.topic], 0)]))
        offsets[block.topic] += len(block)
    return Oracle(pa.concat_tables(tables_))


@pytest.mark.slow
def test_the_year_has_the_known_departures_and_cancellations():
    by_hour = year().expected("departures_by_airport_hour").to_pandas()
    totals = by_hour.groupby("origin")[["departures", "cancellations"]].sum()
    assert totals.to_dict() == {
        "departures": {"EWR": 117_596, "JFK": 109_416, "LGA": 101_509},
        "cancellations": {"EWR": 3_239, "JFK": 1_863, "LGA": 3_153},
    }


@pytest.mark.slow
def test_the_year_has_the_delays_that_pandas_finds_in_the_csv_file():
    raw = nycflights.flights().dropna(subset=["dep_delay"])
    mine = year().expected("delay_by_carrier_day").to_pandas()
    assert (mine["mean_delay"] * mine["departures"]).sum() == pytest.approx(raw["dep_delay"].sum())
    united = raw[(raw["carrier"] == "UA") & (raw["departed_at"].dt.strftime("%Y-%m-%d") == "2013-07-28")]["dep_delay"]
    row = mine[(mine["carrier"] == "UA") & (mine["day"] == date(2013, 7, 28))].iloc[0]
    assert row["carrier_name"] == "United Air Lines Inc." and row["departures"] == len(united)
    assert (row["mean_delay"], row["variance_delay"]) == pytest.approx((united.mean(), united.var()))
