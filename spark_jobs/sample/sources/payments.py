"""Payments by card, some of them fraud: which ones is said later, by their cards' owners."""

import numpy as np

from spark_jobs.sample.sources.draw import Built, Draw, encoded

CARDS, MERCHANTS = 3_000, 400
HOME, ABROAD = ("CH", "CH", "CH", "DE", "FR", "AT"), ("BR", "NG", "US", "TH")
CATEGORIES = ("food", "travel", "electronics", "leisure")
PERIOD, BURST = 60, 3  # of every 60 payments the first three are one thief's
DISPUTES_PER_PAYMENT = BURST / PERIOD
"""A ratio of the event types' shares: `town.SHARES` keeps to it."""

WRONG_SHARE = 0.05  # of disputes that are about an honest payment
DELAY_SECONDS = 120


def attempts(draw: Draw) -> Built:
    """A thief tries a small amount, then large ones, in two countries within seconds."""
    numbers = np.arange(draw.first, draw.first + draw.n)
    place = numbers % PERIOD
    is_theft = place < BURST
    cards = np.where(is_theft, numbers // PERIOD * 7919 % CARDS, draw.rng.integers(0, CARDS, draw.n)).tolist()
    amounts = np.minimum(draw.rng.lognormal(8, 1, draw.n), 5e7).astype(np.int64) + 1
    amounts = np.where(is_theft, np.where(place == 0, 99 + amounts % 300, 60_000 + amounts * 10), amounts).tolist()
    columns = (
        draw.envelopes(), numbers.tolist(), cards, draw.integers(1, MERCHANTS), amounts, is_theft.tolist(),
        draw.integers(0, 59), draw.integers(0, 99), place.tolist(),
    )  # fmt: skip
    values = []
    for envelope, number, card, merchant, amount, theft, country, category, step in zip(*columns, strict=True):
        where = ABROAD[(country + step) % len(ABROAD)] if theft else HOME[country % len(HOME)]
        kind = CATEGORIES[2 if theft and category < 70 else category % len(CATEGORIES)]
        values.append(
            f'{{{envelope},"event_type":"payment_attempted","payment_id":"p-{draw.tag}-{number}",'
            f'"card_id":"card-{card}","merchant_id":{merchant},"amount_cents":{amount},"country":"{where}",'
            f'"category":"{kind}"}}'
        )
    return encoded(f"card-{card}" for card in cards), encoded(values)


def disputes(draw: Draw) -> Built:
    """Each theft's payments in turn, some time after them; now and then somebody is wrong."""
    numbers = np.arange(draw.first, draw.first + draw.n)
    back = int(DELAY_SECONDS * draw.rate)
    disputed = np.maximum(numbers // BURST - back // BURST, 0) * PERIOD + numbers % BURST
    wrong = draw.rng.random(draw.n) < WRONG_SHARE
    disputed = np.where(wrong, disputed + BURST + draw.rng.integers(0, PERIOD - BURST - 2, draw.n), disputed)
    ids = [f"p-{draw.tag}-{number}" for number in disputed.tolist()]
    values = [
        f'{{{envelope},"event_type":"payment_disputed","payment_id":"{payment}"}}'
        for envelope, payment in zip(draw.envelopes(), ids, strict=True)
    ]
    return encoded(ids), encoded(values)
