"""Rows of files that never change, in memory up to a bound; what was used longest ago leaves first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable

import pyarrow as pa


class Kept:
    """What was read, by a key that stands for it for ever."""

    def __init__(self, most_bytes: int) -> None:
        self._most, self._bytes = most_bytes, 0
        self._rows: OrderedDict[Hashable, pa.Table] = OrderedDict()

    def rows(self, key: Hashable, read: Callable[[], pa.Table]) -> pa.Table:
        """The rows of the key, read where they are not in memory."""
        if key in self._rows:
            self._rows.move_to_end(key)
            return self._rows[key]
        rows = self._rows[key] = read()
        self._bytes += rows.nbytes
        while self._bytes > self._most:
            self._bytes -= self._rows.popitem(last=False)[1].nbytes
        return rows
