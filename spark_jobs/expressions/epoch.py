"""Instants as whole microseconds since 1970, exactly, both ways."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def since_epoch(at: datetime) -> int:
    """Microseconds since 1970 of an instant with a time zone."""
    return (at - EPOCH) // MICROSECOND


def at_micros(micros: int) -> datetime:
    """The instant (UTC) so many microseconds after 1970. Raises OverflowError beyond year 9999."""
    return EPOCH + micros * MICROSECOND
