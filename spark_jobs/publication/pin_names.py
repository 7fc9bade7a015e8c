"""Hold the names of pins to the ledger: what another client dropped comes back.

pins | schemas and views in the catalog -> names that were lost, made again from the same literals.
"""

from datetime import datetime
from functools import lru_cache

from spark_jobs.ledger.schema import Pin
from spark_jobs.ledger.store import Store
from spark_jobs.publication import pins
from spark_jobs.publication.names import Execute, serving_views
from spark_jobs.publication.publish import Named
from spark_jobs.registry.views import Views
from spark_jobs.serving.render import servable
from spark_jobs.serving.sql import SqlError

MOST_KNOWN = 1_000


class PinNames:
    """What names a pin has given is found out once; what of them is there, at each look."""

    def __init__(self, views: Views, store: Store) -> None:
        self._views, self._store = views, store
        self._given = lru_cache(maxsize=MOST_KNOWN)(self._given_by)

    def mend(self, execute: Execute) -> Named:
        """Make again what is lost: the names, of a schema that is gone its own alone; what the server refuses waits."""
        made = [pin for pin in self._store.pins() if pin.state == pins.DONE]
        there = {row[0] for row in execute("SHOW SCHEMAS")} if made else set()
        lost, refused = list[str](), dict[str, str]()
        for pin in made:
            schema = pins.schema(pin.name)
            found = serving_views(execute, schema) if schema in there else set[str]()
            missing = sorted(self._given(pin.name, pin.created_at) - found)
            if not missing or not self._is_made(pin.name):  # somebody drops it just now
                continue
            refusal = self._refusal(execute, pin)
            if not self._is_made(pin.name):
                execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            elif refusal is not None:
                refused[schema] = refusal
            else:
                lost += [f"{schema}.{name}" for name in missing] if schema in there else [schema]
        return Named(lost=tuple(lost), refused=refused)

    def _refusal(self, execute: Execute, pin: Pin) -> str | None:
        """Give the names; what the server says where it refuses one."""
        try:
            pins.give_names(execute, self._views, self._store, pin)
        except SqlError as error:
            return str(error)
        return None

    def _is_made(self, name: str) -> bool:
        pin = self._store.pin(name)
        return pin is not None and pin.state == pins.DONE

    def _given_by(self, name: str, created_at: datetime) -> frozenset[str]:
        """created_at: a name may be taken again when its pin is gone."""
        pin = self._store.pin(name)
        if pin is None or pin.created_at != created_at:
            return frozenset()
        return frozenset(view.name for view in servable(self._views, pins.sources_of(self._views, self._store, pin)))
