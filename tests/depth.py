"""How many examples a law is tried on: few in `make test`, more in `make test-laws`."""

from hypothesis import settings


def examples(few: int) -> int:
    """`few`, or by the profile `whole` of Hypothesis (tests/conftest.py) five times as many."""
    return few * (5 if settings.get_current_profile_name() == "whole" else 1)
