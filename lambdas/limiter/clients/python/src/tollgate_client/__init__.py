"""Asks the tollgate limiter for decisions.

A denial is an answer, and what is no decision is an exception. A charge is sent once: only what was turned away before the
limiter saw it is sent again.
"""

from ._client import Limiter
from ._codec import Decision, Held, Outcome, Source, Wanted
from ._direct import DirectLimiter, Invoker
from ._errors import BadRequest, OutcomeUnknown, Refused, Throttled, TollgateError, Unavailable, Unreachable
from ._http import HttpLimiter, Sign

__all__ = [
    "BadRequest",
    "Decision",
    "DirectLimiter",
    "Held",
    "HttpLimiter",
    "Invoker",
    "Limiter",
    "Outcome",
    "OutcomeUnknown",
    "Refused",
    "Sign",
    "Source",
    "Throttled",
    "TollgateError",
    "Unavailable",
    "Unreachable",
    "Wanted",
]
