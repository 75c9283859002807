"""What both ways to the limiter have in common: the questions, and when one is sent again."""

from __future__ import annotations

import json
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from ._codec import Decision, Wanted, decode, decode_all, encode, encode_all, parse
from ._errors import Throttled


class Limiter(ABC):
    """Asks for decisions.

    A charge is not idempotent, so a question that may have been answered is never sent again. One that was throttled, before the
    limiter saw it, is sent up to `throttle_retries` times more, after a random wait below 50 ms, 100 ms, 200 ms and so on.
    """

    def __init__(self, *, throttle_retries: int = 2, sleep: Callable[[float], None] = time.sleep) -> None:
        self._throttle_retries = throttle_retries
        self._sleep = sleep

    def decide(self, limit: str, key: Mapping[str, str], cost: int = 1, plan: str | None = None) -> Decision:
        """Charges `cost` on `limit` for `key`. A denial is an answer: look at `allowed`.

        Raises `BadRequest`, `Unavailable`, `OutcomeUnknown`, `Throttled`, `Unreachable` or `Refused`.
        """
        return decode(self._answer(encode(Wanted(limit, key, cost, plan))))

    def decide_all(self, wanted: Sequence[Wanted]) -> list[Decision]:
        """Charges all limits or none; the answers are in the same order, and `allowed` is the same in each.

        In the way are those with `retry_after_ms` above 0 or `never_fits`. Raises what `decide` does.
        """
        return decode_all(self._answer(encode_all(wanted)), len(wanted))

    def _answer(self, question: object) -> object:
        payload = json.dumps(question, separators=(",", ":")).encode()
        for attempt in range(self._throttle_retries):
            try:
                return parse(self._ask(payload))
            except Throttled:
                self._sleep(random.uniform(0, 0.05 * 2**attempt))
        return parse(self._ask(payload))

    @abstractmethod
    def _ask(self, payload: bytes) -> bytes:
        """Sends it once."""
