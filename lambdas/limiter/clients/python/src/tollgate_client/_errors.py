"""What is raised instead of a decision. Each kind says whether the call may have been charged."""

from __future__ import annotations


class TollgateError(Exception):
    """No decision. Nothing of it says that the caller is over a limit."""

    may_have_charged: bool = False
    """Whether a key may have been charged all the same, so that asking again may charge it twice."""


class BadRequest(TollgateError, ValueError):
    """What was asked for is nothing that can be decided. Asking again is of no use; nothing was charged."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message if field is None else f"{field}: {message}")
        self.field = field
        """The field that is wrong, such as `cost` or `key.user`, where it was found before anything was sent."""


class Refused(TollgateError, PermissionError):
    """The caller may not ask, or there is no limiter at that address (any other 4xx). Nothing was charged."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        """The HTTP status."""


class Throttled(TollgateError):
    """Turned away before the limiter saw it, each time that it was tried. Nothing was charged."""


class Unreachable(TollgateError, ConnectionError):
    """No connection, so nothing was sent and nothing charged."""


class Unavailable(TollgateError):
    """The limiter cannot decide: its table gave no answer, and the limit is `closed`."""

    may_have_charged = True


class OutcomeUnknown(TollgateError):
    """The question was sent and no answer came: a timeout, a lost connection, a function that ended."""

    may_have_charged = True
