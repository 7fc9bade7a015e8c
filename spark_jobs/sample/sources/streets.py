"""Out of doors: buses, a ski resort, people with watches, and people who write sentences."""

import itertools
import json

import numpy as np

from spark_jobs.sample.sources.draw import Built, Draw, encoded

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
    return encoded(ids), encoded(values)


LIFTS, SKIERS = 12, 5_000


def rides(draw: Draw) -> Built:
    """Some lifts are better liked than others."""
    lifts = (draw.rng.random(draw.n) ** 2 * LIFTS).astype(np.int64).tolist()
    columns = (draw.envelopes(), lifts, draw.integers(1, SKIERS))
    values = [
        f'{{{envelope},"event_type":"lift_ride_taken","lift_id":"lift-{lift}","skier_id":{skier}}}'
        for envelope, lift, skier in zip(*columns, strict=True)
    ]
    return encoded(f"lift-{lift}" for lift in lifts), encoded(values)


MEASURE_SECONDS = 60


def vitals(draw: Draw) -> Built:
    """As many people as measure once a minute; who walks faster has a faster pulse."""
    people = max(5, round(draw.rate * MEASURE_SECONDS))
    numbers = (np.arange(draw.first, draw.first + draw.n) % people + 1).tolist()
    columns = (draw.envelopes(), numbers, draw.integers(0, 160), draw.integers(48, 90))
    values = [
        f'{{{envelope},"event_type":"vitals_measured","person_id":{person},"steps":{steps},'
        f'"heart_rate":{pulse + steps // 2}}}'
        for envelope, person, steps, pulse in zip(*columns, strict=True)
    ]
    return encoded(map(str, numbers)), encoded(values)


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
    return encoded(map(str, authors)), encoded(values)
