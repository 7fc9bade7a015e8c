"""What is shown and what is clicked: searches and their results, advertisements.

A click belongs to an earlier search or showing, of which number, time and owner follow from the town's plan alone: the
two are drawn apart, and lie in different topics.
"""

import numpy as np

from spark_jobs.sample.sources.draw import Built, Draw, Ints, encoded
from spark_jobs.sample.sources.web import USERS

QUERIES = (
    "red bicycle",
    "Lift tickets",
    "bread",
    "snow shoes",
    "l'été",
    "bus  M4",
    "雪",
    "umbrella",
    "NULL",
    "50 % off",
)
SEARCHES_A_SESSION = 3
CLICKS_PER_SEARCH, CLICKS_PER_SHOWING = 0.6, 0.3
"""Ratios of the event types' shares: `town.SHARES` keeps to them."""

SOON_SECONDS, LATE_SHARE, LATE_SECONDS = 30, 0.05, 4_500
ADS = 40


def searches(draw: Draw) -> Built:
    numbers = range(draw.first, draw.first + draw.n)
    sessions = [session(number, draw.tag) for number in numbers]
    columns = (draw.envelopes(), numbers, sessions, draw.integers(0, len(QUERIES) - 1))
    values = [
        f'{{{envelope},"event_type":"search_performed","search_id":"s-{draw.tag}-{number}","session_id":"{of}",'
        f'"user_id":{_user(number // SEARCHES_A_SESSION)},"query":"{QUERIES[query]}"}}'
        for envelope, number, of, query in zip(*columns, strict=True)
    ]
    return encoded(sessions), encoded(values)


def session(search: int, tag: str) -> str:
    return f"v-{tag}-{search // SEARCHES_A_SESSION}"


def result_clicks(draw: Draw) -> Built:
    clicked = _before(draw, CLICKS_PER_SEARCH)
    sessions = [session(number, draw.tag) for number in clicked]
    numbers = range(draw.first, draw.first + draw.n)
    columns = (draw.envelopes(), numbers, clicked, sessions, draw.integers(1, 40), draw.integers(1, 20))
    values = [
        f'{{{envelope},"event_type":"result_clicked","click_id":"k-{draw.tag}-{number}",'
        f'"search_id":"s-{draw.tag}-{search}","session_id":"{of}","url":"/products/{product}","position":{position}}}'
        for envelope, number, search, of, product, position in zip(*columns, strict=True)
    ]
    return encoded(sessions), encoded(values)


def showings(draw: Draw) -> Built:
    return _of_ads(draw, "ad_shown", list(range(draw.first, draw.first + draw.n)))


def ad_clicks(draw: Draw) -> Built:
    return _of_ads(draw, "ad_clicked", _before(draw, CLICKS_PER_SHOWING))


def _of_ads(draw: Draw, event_type: str, showings: list[int]) -> Built:
    ads = [f"ad-{showing * 31 % ADS}" for showing in showings]
    values = [
        f'{{{envelope},"event_type":"{event_type}","impression_id":"i-{draw.tag}-{showing}","ad_id":"{ad}",'
        f'"user_id":{_user(showing)}}}'
        for envelope, showing, ad in zip(draw.envelopes(), showings, ads, strict=True)
    ]
    return encoded(ads), encoded(values)


def _before(draw: Draw, per_one: float) -> list[int]:
    """The number of what is clicked: mostly half a minute before the click, now and then more than an hour."""
    lag = draw.rng.exponential(SOON_SECONDS, draw.n)
    lag += np.where(draw.rng.random(draw.n) < LATE_SHARE, draw.rng.random(draw.n) * LATE_SECONDS, 0)
    of_now: Ints = ((np.arange(draw.first, draw.first + draw.n) / per_one) - lag * draw.rate / per_one).astype(np.int64)
    return [int(number) for number in np.maximum(of_now, 0)]


def _user(number: int) -> int:
    return number * 7919 % USERS + 1
