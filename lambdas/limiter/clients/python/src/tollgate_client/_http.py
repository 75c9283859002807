"""`POST /v1/decisions`, at a function URL, behind an API, or at `tollgate dev`."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ._client import Limiter
from ._codec import parse
from ._errors import BadRequest, OutcomeUnknown, Refused, Throttled, TollgateError, Unavailable, Unreachable

Sign = Callable[[str, str, Mapping[str, str], bytes], Mapping[str, str]]
"""Method, URL, headers and body of a request; the headers to send instead. AWS asks for SigV4."""


class HttpLimiter(Limiter):
    """The limiter at `url`, which `/v1/decisions` is appended to. Connecting, and each wait for an answer, take `timeout_s` at most.

    A connection for each question: one that is kept and has gone meanwhile would leave a charge without an answer.
    """

    def __init__(self, url: str, sign: Sign | None = None, *, timeout_s: float = 3.0, **options: Any) -> None:
        super().__init__(**options)
        self._url = url.rstrip("/") + "/v1/decisions"
        at = urlsplit(self._url)
        if at.scheme not in ("http", "https") or not at.hostname:
            raise ValueError(f"{url!r} must be a URL with http:// or https://")
        self._sign = sign
        self._timeout_s = timeout_s

    def _ask(self, payload: bytes) -> bytes:
        headers: Mapping[str, str] = {"content-type": "application/json"}
        if self._sign:
            headers = self._sign("POST", self._url, headers, payload)
        at = urlsplit(self._url)
        kind = http.client.HTTPSConnection if at.scheme == "https" else http.client.HTTPConnection
        connection = kind(at.hostname or "", at.port, timeout=self._timeout_s)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise Unreachable(f"{at.netloc}: {error}") from error
            try:
                connection.request("POST", at.path, payload, dict(headers))
                response = connection.getresponse()
                status, body = response.status, response.read()
            except (OSError, http.client.HTTPException) as error:
                raise OutcomeUnknown(f"{at.netloc}: no answer: {error!r}") from error
        finally:
            connection.close()
        if status != 200:
            raise _failure(status, body)
        return body


def _failure(status: int, body: bytes) -> TollgateError:
    try:
        fields = parse(body)
    except OutcomeUnknown:
        fields = None
    fields = fields if isinstance(fields, dict) else {}
    kind, message = fields.get("error"), str(fields.get("message", body[:200].decode(errors="replace")))
    if status == 429:
        return Throttled(message)
    if kind == "bad_request":
        return BadRequest(message)
    if kind == "limiter_unavailable":
        return Unavailable(message)
    return Refused(status, message) if 400 <= status < 500 else OutcomeUnknown(f"{status}: {message}")
