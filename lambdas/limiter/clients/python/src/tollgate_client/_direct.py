"""Direct invocation of the limiter function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ._client import Limiter
from ._codec import parse
from ._errors import BadRequest, OutcomeUnknown, Throttled, Unavailable, Unreachable

# Classes of botocore: there was no connection; or there was one, and what came back, if anything, is not whole.
NOT_SENT = {"ConnectTimeoutError", "EndpointConnectionError", "ProxyConnectionError"}
NO_ANSWER = {"HTTPClientError", "IncompleteReadError", "ResponseStreamingError", "SSLError"}


class Invoker(Protocol):
    """What is used of a client of Lambda: `boto3.client("lambda")` is one."""

    @property
    def invoke(self) -> Callable[..., Any]:
        """Invokes a function and waits for its answer."""


class DirectLimiter(Limiter):
    """The limiter function `function_name` (name or ARN), invoked by `client`.

    The client must not send again by itself: `Config(retries={"total_max_attempts": 1})`. Its own errors, such as missing credentials or
    permissions, pass as they are.
    """

    def __init__(self, client: Invoker, function_name: str, **options: Any) -> None:
        super().__init__(**options)
        self._client = client
        self._function_name = function_name

    def _ask(self, payload: bytes) -> bytes:
        try:
            answer = self._client.invoke(FunctionName=self._function_name, Payload=payload)
            body: bytes = answer["Payload"].read()
        except Exception as error:
            told = _told(error)
            if told is None:
                raise
            raise told from error
        if answer.get("FunctionError"):
            raise _failure(parse(body))
        return body


def _told(error: Exception) -> Exception | None:
    """What a client's error says of the charge, without a dependency on the client: by its code, status or class."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        if response.get("Error", {}).get("Code") in ("TooManyRequestsException", "ThrottlingException"):
            return Throttled(str(error))
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        return OutcomeUnknown(str(error)) if status >= 500 else None
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & NOT_SENT:
        return Unreachable(str(error))
    return OutcomeUnknown(str(error)) if names & NO_ANSWER or isinstance(error, OSError) else None


def _failure(report: object) -> Exception:
    """What a function error says; one that is not the limiter's own is a function that ended or ran out of time."""
    fields = report if isinstance(report, dict) else {}
    kind, message = fields.get("errorType"), str(fields.get("errorMessage", "the function failed"))
    if kind == "BadRequest":
        return BadRequest(message)
    return Unavailable(message) if kind == "LimiterUnavailable" else OutcomeUnknown(f"{kind}: {message}")
