"""SQL that several of the oracle's answers have in common, over the tables of `oracle.events`."""

NAMES = """
    SELECT carrier, name FROM airline_changed
    QUALIFY 1 = row_number() OVER (PARTITION BY carrier ORDER BY topic DESC, partition DESC, "offset" DESC)
    AND deleted IS NOT TRUE
"""

STOCK = """
    SELECT product_id, CAST(sum(came) AS BIGINT) AS received, CAST(sum(went) AS BIGINT) AS ordered,
           CAST(sum(came - went) AS BIGINT) AS on_hand
    FROM (SELECT product_id, quantity AS came, 0 AS went FROM stock_received
          UNION ALL SELECT product_id, 0, quantity FROM order_placed)
    GROUP BY product_id
"""

SETTINGS = """
    SELECT user_id, plan, locale FROM settings_changed
    QUALIFY 1 = row_number() OVER (PARTITION BY user_id ORDER BY topic DESC, partition DESC, "offset" DESC)
    AND deleted IS NOT TRUE
"""

RATES = """
    SELECT event_type, date_trunc('minute', occurred_at) AS minute, count(*) AS events
    FROM every_event
    GROUP BY ALL
"""


def clicks(
    shown: str, clicked: str, by: tuple[str, ...], within: str, columns: str, own: str, alone: str = "NULL"
) -> str:
    """What was shown, with its clicks in the time after it; and the clicks without anything shown in that time before.

    own: the column of what was shown; alone: what there is of it in a click.
    """
    same = " AND ".join(f"c.{name} = s.{name}" for name in by)
    near = f"{same} AND c.occurred_at BETWEEN s.occurred_at AND s.occurred_at + INTERVAL {within}"
    name, keys = own.removeprefix("s."), ", ".join(f"{{0}}.{name}" for name in by)
    return f"""
        SELECT {columns} FROM (
            SELECT {keys.format("s")}, {own}, s.occurred_at AS happened_at, s.partition, s."offset",
                   count(c.occurred_at) AS clicks, min(c.occurred_at) AS first_clicked_at,
                   CASE WHEN count(c.occurred_at) > 0 THEN 'clicked' ELSE 'not_clicked' END AS status
            FROM {shown} s LEFT JOIN {clicked} c ON {near} GROUP BY ALL
            UNION ALL
            SELECT {keys.format("c")}, {alone} AS {name}, c.occurred_at, c.partition, c."offset", 1, NULL, 'orphan'
            FROM {clicked} c ANTI JOIN {shown} s ON {near})"""


def rates(shown: str, clicked: str, by: tuple[str, ...], per: str, times: str, within: str) -> str:
    """Per `per` and hour how much of what was shown has a click in the time after it."""
    same = " AND ".join(f"c.{name} = s.{name}" for name in by)
    return f"""
        SELECT {per}, date_trunc('hour', occurred_at) AS hour, count(*) AS {times}, count(*) FILTER (met) AS clicked,
               CAST(count(*) FILTER (met) AS DOUBLE) / count(*) AS click_rate
        FROM (SELECT *, EXISTS (FROM {clicked} c WHERE {same} AND c.occurred_at
                                BETWEEN s.occurred_at AND s.occurred_at + INTERVAL {within}) AS met FROM {shown} s)
        GROUP BY ALL"""
