"""What a refused expression tells its author: the text, where it stands, the reason and what to write instead."""


class ExpressionError(ValueError):
    """An expression that the subset does not contain; raised when a view is loaded, never later."""

    def __init__(self, text: str, where: str, reason: str, hint: str) -> None:
        self.text, self.where, self.reason, self.hint = text, where, reason, hint
        super().__init__(f"{where}: `{text}`: {reason}" + (f" ({hint})" if hint else ""))


class Refused(Exception):
    """A node of the tree is not in the subset; `parse` adds the text and the place, a query which `text` of its own."""

    def __init__(self, reason: str, hint: str = "") -> None:
        self.reason, self.hint, self.text = reason, hint, ""
        super().__init__(reason)
