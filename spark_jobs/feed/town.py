"""What happens in the town: a market, a shop with a web site, buses, people who write sentences.

Draw (random numbers, ids, times of n events) -> a source -> keys, values (JSON bytes) of n events of one type

Values are built by formatting: a dictionary and json.dumps for each event would cost five times as much.
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Built = tuple[list[bytes], list[bytes]]

SHARES = {
    "order_placed": 0.30,
    "order_executed": 0.20,
    "page_viewed": 0.30,
    "bus_position_reported": 0.15,
    "sentence_posted": 0.05,
}


@dataclass(frozen=True)
class Draw:
    """n events of one type, numbers `first` to `first + n - 1` of the town since its start.

    occurred_ms: milliseconds since 1970; tag: names the town, so that two towns share no ids; rate: events a second.
    """

    rng: np.random.Generator
    first: int
    occurred_ms: Ints
    tag: str
    rate: float

    @property
    def n(self) -> int:
        return len(self.occurred_ms)

    def integers(self, low: int, high: int) -> list[int]:
        """n of low..high, both included, equally likely."""
        drawn: list[int] = self.rng.integers(low, high, self.n, endpoint=True).tolist()
        return drawn

    def envelopes(self) -> list[str]:
        """`event_id` and `occurred_at` of each event, as JSON members."""
        at = instants(self.occurred_ms)
        return [f'"event_id":"{i}","occurred_at":"{t}Z"' for i, t in zip(self._ids(), at, strict=True)]

    def _ids(self) -> list[str]:
        """Random UUIDs of version 4, from the town's random numbers."""
        digits = _HEX[self.rng.integers(0, 256, (self.n, 16), np.uint8)].reshape(self.n, 32)
        digits[:, 12], digits[:, 16] = ord("4"), ord("8")
        text = np.full((self.n, 36), ord("-"), np.uint8)
        text[:, _DIGITS] = digits
        ids: list[str] = text.view("S36")[:, 0].astype("U36").tolist()
        return ids


Source = Callable[[Draw], Built]

_HEX = np.frombuffer(b"".join(b"%02x" % i for i in range(256)), np.uint8).reshape(256, 2)
_DIGITS = [i for i in range(36) if i not in (8, 13, 18, 23)]


def instants(ms: Ints) -> list[str]:
    """2025-03-01T12:00:00.000 of each; without the Z."""
    text: list[str] = np.datetime_as_string(ms.astype("datetime64[ms]")).tolist()
    return text


def sources(rate: float) -> dict[str, Source]:
    """A fresh town: event type -> source. `rate`: events a second of all types together."""
    return {
        "order_placed": orders,
        "order_executed": executions,
        "page_viewed": Visits(rate * SHARES["page_viewed"]),
        "bus_position_reported": buses,
        "sentence_posted": sentences,
    }


COLOURS = ["red"] * 5 + ["yellow"] * 3 + ["blue"] * 2
VENUES = ["x", "y", "z"]
COMPANIES = (1001, 1010)  # few, so that orders and executions meet often
STORES, PRODUCTS, BUYERS = 20, 200, 20_000


def orders(draw: Draw) -> Built:
    """Some people buy much more often than others; each product has its price."""
    buyers = (draw.rng.random(draw.n) ** 2 * BUYERS).astype(np.int64) + 1
    products = draw.rng.integers(1, PRODUCTS, draw.n, endpoint=True)
    ids = [f"o-{draw.tag}-{number}" for number in range(draw.first, draw.first + draw.n)]
    columns = (
        draw.envelopes(), ids, draw.integers(*COMPANIES), buyers.tolist(), draw.integers(1, STORES), products.tolist(),
        draw.integers(0, len(COLOURS) - 1), draw.integers(1, 6), (products * 7919 % 9000 + 99).tolist(),
    )  # fmt: skip
    values = [
        f'{{{envelope},"event_type":"order_placed","order_id":"{order}","comp_id":{company},"user_id":{user},'
        f'"store_id":{store},"product_id":{product},"colour":"{COLOURS[colour]}","quantity":{quantity},'
        f'"unit_price_cents":{price}}}'
        for envelope, order, company, user, store, product, colour, quantity, price in zip(*columns, strict=True)
    ]
    return _bytes(ids), _bytes(values)


def executions(draw: Draw) -> Built:
    companies = draw.integers(*COMPANIES)
    numbers = range(draw.first, draw.first + draw.n)
    columns = (draw.envelopes(), numbers, companies, draw.integers(0, 2), draw.integers(100, 100_000))
    values = [
        f'{{{envelope},"event_type":"order_executed","execution_id":"e-{draw.tag}-{number}","comp_id":{company},'
        f'"venue":"{VENUES[venue]}","price_cents":{price}}}'
        for envelope, number, company, venue, price in zip(*columns, strict=True)
    ]
    return _bytes(map(str, companies)), _bytes(values)


PAGES = ["/", "/market", "/offers", "/basket", "/about", *(f"/products/{n}" for n in range(1, 41))]
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
            f'{{{envelope},"event_type":"page_viewed","user_id":{user},"url":"{PAGES[page]}"{REFERRERS[referrer]}}}'
            for envelope, user, page, referrer in zip(*columns, strict=True)
        ]
        return _bytes(map(str, users)), _bytes(values)

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


REPORT_SECONDS, ROUND_SECONDS, LINES = 5, 1800, ("M4", "12", "N7", "X")


def buses(draw: Draw) -> Built:
    """As many buses as report every five seconds; each goes round its circle in half an hour."""
    fleet = max(3, round(draw.rate * REPORT_SECONDS))
    numbers = np.arange(draw.first, draw.first + draw.n) % fleet
    angle = (draw.occurred_ms / 1000 / ROUND_SECONDS + numbers / fleet) * 2 * np.pi
    radius = 0.01 * (numbers % 5 + 1)
    lat, lon = 47.05 + radius * np.sin(angle), 8.3 + radius * np.cos(angle)
    ids = [f"bus-{number}" for number in numbers.tolist()]
    columns = (draw.envelopes(), ids, (numbers % len(LINES)).tolist(), lat.tolist(), lon.tolist())
    values = [
        f'{{{envelope},"event_type":"bus_position_reported","bus_id":"{bus}","line":"{LINES[line]}",'
        f'"lat":{north:.6f},"lon":{east:.6f}}}'
        for envelope, bus, line, north, east in zip(*columns, strict=True)
    ]
    return _bytes(ids), _bytes(values)


WHO = ("the baker", "A skier", "My neighbour", "The 7 dwarfs", "nobody", "Zoë", "the bus driver", "İpek")
DOES = ("sells", "likes", "has lost", "is waiting for", "talks about", "cannot find")
WHAT = ("bread", "two tickets", "the Lift", "a red bicycle", "snow, snow and snow", "bus M4", "the market's opening")
ODD = (  # good text that careless code trips over
    "", "   ", "'; DROP TABLE facts; --", "{{ 7 * 7 }} ${HOME} $(id) %s %d", "../../etc/passwd", "=cmd|' /C calc'!A0",
    "line one\nline two\r\n\ttab", "\x1b[31mred\x1b[0m", "שלום עולם مرحبا", "e\u0301 n\u0303",
    "İSTANBUL ẞ ǅ", "日本語 🚲",
    "NULL null None NaN", "quoted \"text\" and back\\slash", "\u0000 zero", "STRASSE straße",
)  # fmt: skip
TEXTS = [
    *(json.dumps(f"{a} {b} {c}.") for a, b, c in itertools.product(WHO, DOES, WHAT)),
    *(json.dumps(text, ensure_ascii=bool(i % 2)) for i, text in enumerate(ODD)),
]
AUTHORS = 500


def sentences(draw: Draw) -> Built:
    authors = draw.integers(1, AUTHORS)
    columns = (draw.envelopes(), authors, draw.integers(0, len(TEXTS) - 1))
    values = [
        f'{{{envelope},"event_type":"sentence_posted","author_id":{author},"text":{TEXTS[text]}}}'
        for envelope, author, text in zip(*columns, strict=True)
    ]
    return _bytes(map(str, authors)), _bytes(values)


def _bytes(texts: "itertools.chain[str] | map[str] | list[str]") -> list[bytes]:
    return [text.encode() for text in texts]
