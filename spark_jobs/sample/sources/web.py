"""The shop's web site: who looks at which pages, and who the users say they are."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spark_jobs.sample.sources.draw import Built, Draw, Ints, encoded

PAGES = ["/", "/market", "/offers", "/basket", "/about", *(f"/products/{n}" for n in range(1, 41))]
DEVICES = ["", ',"device":"phone"', ',"device":"tablet"', ',"device":"desktop"']
REFERRERS = ['', ',"referrer":null', ',"referrer":"/"', ',"referrer":"https://search.example/?q=town"']  # fmt: skip


class Visits:
    """Visitors come, look at about eight pages half a minute apart, and stay away for at least the next hour.

    A fixed number of visits is under way at a time; each event belongs to one of them, and every eighth begins a new
    visit in its place, by the next visitor of the place's queue.
    """

    PAGE_SECONDS, PAGES_A_VISIT, QUEUE = 30, 8, 40

    def __init__(self, rate: float) -> None:
        self._visitors = np.zeros(max(8, round(rate * self.PAGE_SECONDS)), np.int64)  # that were at each place

    def __call__(self, draw: Draw) -> Built:
        places = draw.rng.integers(0, len(self._visitors), draw.n)
        is_new = draw.rng.random(draw.n) < 1 / self.PAGES_A_VISIT
        users = (places + self._numbers(places, is_new) % self.QUEUE * len(self._visitors) + 1).tolist()
        columns = (draw.envelopes(), users, draw.integers(0, len(PAGES) - 1), draw.integers(0, len(REFERRERS) - 1))
        values = [
            f'{{{envelope},"event_type":"page_viewed","user_id":{user},"url":"{PAGES[page]}"{REFERRERS[referrer]}'
            f"{DEVICES[user % len(DEVICES)]}}}"
            for envelope, user, page, referrer in zip(*columns, strict=True)
        ]
        return encoded(map(str, users)), encoded(values)

    def _numbers(self, places: Ints, is_new: NDArray[np.bool_]) -> Ints:
        """How many visitors were at the event's place before its own."""
        order = np.argsort(places, kind="stable")
        there, starts = np.unique(places[order], return_index=True)
        begun = np.cumsum(is_new[order])
        before = np.r_[0, begun][starts]
        numbers = np.empty(len(places), np.int64)
        lengths = np.diff(np.r_[starts, len(places)])
        numbers[order] = begun - np.repeat(before, lengths) + np.repeat(self._visitors[there], lengths)
        self._visitors[there] = numbers[order][np.r_[starts[1:], len(places)] - 1]
        return numbers


USERS = 2_000
FIRST_NAMES = ("Ana", "Béatrice", "Chloé", "Dāvis", "Łucja", "Noah", "Øyvind", "Zoë")
LAST_NAMES = ("Meier", "O'Neill", "Şahin", "van der Berg", "李", "Ümit")
PLANS, LOCALES = ("free", "basic", "pro"), ("de-CH", "fr-CH", "it-CH", "en-GB")
REMOVED, NULL = 0.04, 0.02
"""Shares of changes that remove their user: all of them, and those of them that do it by a null value."""


def profiles(draw: Draw) -> Built:
    def fields(first: int, last: int) -> str:
        name = f"{FIRST_NAMES[first % len(FIRST_NAMES)]} {LAST_NAMES[last % len(LAST_NAMES)]}"
        return f'"name":"{name}","zip":"{6000 + last}"'

    return _changes(draw, "profile_changed", fields)


def settings(draw: Draw) -> Built:
    def fields(plan: int, locale: int) -> str:
        return f'"plan":"{PLANS[plan % len(PLANS)]}","locale":"{LOCALES[locale % len(LOCALES)]}"'

    return _changes(draw, "settings_changed", fields)


def _changes(draw: Draw, event_type: str, fields: Callable[[int, int], str]) -> Built:
    """Each says all of a user's fields; a few remove the user."""
    users, chance = draw.integers(1, USERS), draw.rng.random(draw.n).tolist()
    ends = [',"deleted":true}' if share < REMOVED else "}" for share in chance]
    columns = (draw.envelopes(), users, draw.integers(0, 99), draw.integers(0, 99), ends)
    values = [
        f'{{{envelope},"event_type":"{event_type}","user_id":{user},{fields(one, other)}{end}'
        for envelope, user, one, other, end in zip(*columns, strict=True)
    ]
    whole = zip(encoded(values), chance, strict=True)
    return encoded(map(str, users)), [None if share < NULL else value for value, share in whole]
