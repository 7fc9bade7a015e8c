"""HTTP questions to the platform's own parts: they go there, whatever proxy the caller's environment names.

request -> answer, without a proxy: it could not reach a loopback address, and would read the passwords.
"""

import urllib.request
from http.client import HTTPResponse

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(request: urllib.request.Request | str, data: bytes | None = None, *, seconds: float) -> HTTPResponse:
    """The open answer; raises what `urllib.request.urlopen` does (OSError; HTTPError where it is refused)."""
    answer: HTTPResponse = _OPENER.open(request, data, timeout=seconds)
    return answer
