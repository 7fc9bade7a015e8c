"""What an error says of Kafka, in one line."""

import pytest

from spark_jobs.messaging import security


@pytest.mark.parametrize("error", [MemoryError(), TimeoutError(), AssertionError()])
def test_an_error_without_a_text_is_called_by_its_name(error: Exception) -> None:
    assert security.explained(error) == repr(error)
