"""The market and the shop: orders, executions, commands to orders, and what comes into the warehouses."""

import numpy as np

from spark_jobs.sample.sources.draw import Built, Draw, encoded

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
    return encoded(ids), encoded(values)


def executions(draw: Draw) -> Built:
    companies = draw.integers(*COMPANIES)
    numbers = range(draw.first, draw.first + draw.n)
    columns = (draw.envelopes(), numbers, companies, draw.integers(0, 2), draw.integers(100, 100_000))
    values = [
        f'{{{envelope},"event_type":"order_executed","execution_id":"e-{draw.tag}-{number}","comp_id":{company},'
        f'"venue":"{VENUES[venue]}","price_cents":{price}}}'
        for envelope, number, company, venue, price in zip(*columns, strict=True)
    ]
    return encoded(map(str, companies)), encoded(values)


WAREHOUSES = ["north", "south"]


def stock(draw: Draw) -> Built:
    """About as many pieces of each product as people order."""
    products = draw.integers(1, PRODUCTS)
    columns = (draw.envelopes(), products, draw.integers(20, 180), draw.integers(0, 1))
    values = [
        f'{{{envelope},"event_type":"stock_received","product_id":{product},"quantity":{quantity},'
        f'"warehouse":"{WAREHOUSES[warehouse]}"}}'
        for envelope, product, quantity, warehouse in zip(*columns, strict=True)
    ]
    return encoded(map(str, products)), encoded(values)


COMMANDS_PER_ORDER = 0.2
"""A ratio of the event types' shares: `town.SHARES` keeps to it."""

COMMANDED_TOGETHER = 3
ACTIONS = ("place", "change", "change", "cancel")


def commands(draw: Draw) -> Built:
    """Three at a time to one order, in any order, so that some are to be refused; some orders have no other event."""
    numbers = np.arange(draw.first, draw.first + draw.n)
    orders = (numbers // COMMANDED_TOGETHER * COMMANDED_TOGETHER / COMMANDS_PER_ORDER).astype(np.int64)
    kinds = np.where(numbers // COMMANDED_TOGETHER % 3 == 0, "c", "o").tolist()
    ids = [f"{kind}-{draw.tag}-{order}" for kind, order in zip(kinds, orders.tolist(), strict=True)]
    columns = (draw.envelopes(), numbers.tolist(), ids, draw.integers(0, len(ACTIONS) - 1))
    values = [
        f'{{{envelope},"event_type":"order_commanded","command_id":"c-{draw.tag}-{number}","order_id":"{order}",'
        f'"action":"{ACTIONS[action]}"}}'
        for envelope, number, order, action in zip(*columns, strict=True)
    ]
    return encoded(ids), encoded(values)
