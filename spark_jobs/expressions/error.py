"""What a refused expression tells its author: the text, where it stands, the reason and what to write instead."""

from collections.abc import Iterator
from contextlib import contextmanager


class ExpressionError(ValueError):
    """An expression that the subset does not contain; raised when a view is loaded, never later."""

    def __init__(self, text: str, where: str, reason: str, hint: str) -> None:
        self.text, self.where, self.reason, self.hint = text, where, reason, hint
        super().__init__(f"{where}: `{text}`: {reason}" + (f" ({hint})" if hint else ""))


class Refused(Exception):
    """A node of the tree is not in the subset; `reported` adds text and place, a query which `text` of its own."""

    def __init__(self, reason: str, hint: str = "") -> None:
        self.reason, self.hint, self.text = reason, hint, ""
        super().__init__(reason)


@contextmanager
def reported(text: str, where: str) -> Iterator[None]:
    """What is refused inside is an ExpressionError about this text."""
    try:
        yield
    except Refused as refused:
        raise ExpressionError(refused.text or text, where, refused.reason, refused.hint) from refused
    except RecursionError as error:
        raise ExpressionError(text, where, "it is nested too deeply", "split it up") from error
