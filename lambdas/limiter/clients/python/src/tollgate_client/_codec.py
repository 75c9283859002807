"""The limiter's JSON, and what it stands for. `exchanges.json` holds both sides to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from ._errors import BadRequest, OutcomeUnknown

Source = Literal["table", "cache", "lease", "local", "open", "closed"]
"""Who decided: the table; this limiter's memory of a denial; tokens that it has taken ahead; and while the table is gone, its share of
the limit, or the policy alone."""

Outcome = Literal["allowed", "denied", "never_fits"]
"""What a limit says by itself."""

Held = Literal["ban", "override", "penalty"]
"""What was in force for the key."""

MOST_COST = 1_000_000_000_000
"""The dearest call, in tokens."""


@dataclass(frozen=True)
class Wanted:
    """One limit to be charged."""

    limit: str
    """Its name in the policy."""
    key: Mapping[str, str]
    """Who is charged: each dimension of the limit's key, and its value."""
    cost: int = 1
    """Tokens, 0 to 1,000,000,000,000. 0 asks how it stands, and charges nothing."""
    plan: str | None = None
    """The caller's plan; `None` for the policy's default."""


@dataclass(frozen=True)
class Decision:
    """The answer about one limit. Times are in milliseconds from now."""

    allowed: bool
    """Whether the call may go. Of several limits, it is the same in each answer."""
    limit: str
    """The limit's name."""
    remaining: int | None
    """Tokens left; `None` where the limit was not asked."""
    retry_after_ms: int | None
    """The wait that this limit asks for; 0 where it is not in the way, `None` for a cost that never fits."""
    reset_ms: int | None
    """Until all tokens are back; `None` where the limit was not asked."""
    source: Source
    """Who decided."""
    never_fits: bool = False
    """The cost is above what the limit ever has."""
    wait_ms: int | None = None
    """Of a pacer: the call may go that much later."""
    shadow: Outcome | None = None
    """Of a limit that only reports: what it says."""
    shadow_retry_after_ms: int | None = None
    """Of a limit that only reports: the wait that it would ask for."""
    shadow_wait_ms: int | None = None
    """Of a pacer that only reports: how long it would have the call wait."""
    held: Held | None = None
    """What was in force for the key that it was decided by."""


def encode(wanted: Wanted) -> dict[str, Any]:
    """One question as JSON has it; raises `BadRequest` for what the limiter could not read."""
    if not isinstance(wanted.limit, str) or not wanted.limit:
        raise BadRequest("name a limit of the policy", "limit")
    if not isinstance(wanted.key, Mapping) or not wanted.key:
        raise BadRequest("name whom to charge, like {'user': 'alice'}", "key")
    for name, value in wanted.key.items():
        if not isinstance(name, str) or not isinstance(value, str) or not value:
            raise BadRequest("the value must be a string, and not empty", f"key.{name}")
    if type(wanted.cost) is not int or not 0 <= wanted.cost <= MOST_COST:
        raise BadRequest("must be a whole number from 0 to 1,000,000,000,000", "cost")
    if wanted.plan is not None and not isinstance(wanted.plan, str):
        raise BadRequest("must be the name of a plan", "plan")
    question: dict[str, Any] = {"limit": wanted.limit, "key": dict(wanted.key), "cost": wanted.cost}
    if wanted.plan is not None:
        question["plan"] = wanted.plan
    return question


def encode_all(wanted: Sequence[Wanted]) -> list[dict[str, Any]]:
    """The questions of one all-or-nothing decision."""
    if not wanted:
        raise BadRequest("name at least one limit", "wanted")
    return [encode(one) for one in wanted]


def decode(answer: object) -> Decision:
    """One answer. What this version does not know of is left out; what is missing is no decision."""
    if not isinstance(answer, dict):
        raise _no_decision("an answer is no object")
    return Decision(
        allowed=_of(answer, "allowed", bool),
        limit=_of(answer, "limit", str),
        remaining=_whole(answer, "remaining", required=True),
        retry_after_ms=_whole(answer, "retry_after_ms", required=True),
        reset_ms=_whole(answer, "reset_ms", required=True),
        source=cast(Source, _of(answer, "source", str)),
        never_fits=answer.get("never_fits") is True,
        wait_ms=_whole(answer, "wait_ms"),
        shadow=cast("Outcome | None", answer.get("shadow")),
        shadow_retry_after_ms=_whole(answer, "shadow_retry_after_ms"),
        shadow_wait_ms=_whole(answer, "shadow_wait_ms"),
        held=cast("Held | None", answer.get("held")),
    )


def decode_all(answers: object, count: int) -> list[Decision]:
    """The answers to `count` questions, in their order."""
    if not isinstance(answers, list) or len(answers) != count:
        raise _no_decision(f"not the answers to {count} questions")
    return [decode(answer) for answer in answers]


def parse(body: bytes) -> object:
    """JSON, or `OutcomeUnknown`: whoever answered was not the limiter."""
    try:
        return cast(object, json.loads(body))
    except ValueError as error:
        raise _no_decision("the answer is not JSON") from error


def _of(answer: dict[str, Any], name: str, kind: type[Any]) -> Any:
    value = answer.get(name)
    if type(value) is not kind:
        raise _no_decision(f"{name!r} is missing, or of another type")
    return value


def _whole(answer: dict[str, Any], name: str, required: bool = False) -> int | None:
    value = answer.get(name)
    if (value is None and (name in answer or not required)) or type(value) is int:
        return value
    raise _no_decision(f"{name!r} is missing, or of another type")


def _no_decision(what: str) -> OutcomeUnknown:
    return OutcomeUnknown(f"this is no answer of the limiter: {what}")
