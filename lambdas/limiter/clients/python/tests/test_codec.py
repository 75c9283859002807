"""The codec against what the limiter really says, and against what it must not take for a decision."""

from __future__ import annotations

import json
import unittest
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

from tollgate_client import BadRequest, Decision, Held, Outcome, OutcomeUnknown, Source, Wanted
from tollgate_client._codec import decode, decode_all, encode, encode_all

FILE: dict[str, Any] = json.loads((Path(__file__).parents[2] / "exchanges.json").read_text())
EXCHANGES: list[dict[str, Any]] = FILE["exchanges"]


class Exchanges(unittest.TestCase):
    def test_each_question_is_encoded_as_the_limiter_reads_it(self) -> None:
        for exchange in EXCHANGES:
            request = exchange["request"]
            encoded: object
            if isinstance(request, list):
                encoded = encode_all([Wanted(**one) for one in request])
            else:
                encoded = encode(Wanted(**request))
            self.assertEqual(encoded, request, exchange["name"])

    def test_each_answer_is_decoded_whole(self) -> None:
        names = {field.name for field in fields(Decision)}
        seen: set[str] = set()
        for exchange in EXCHANGES:
            answer = exchange.get("answer")
            for one in answer if isinstance(answer, list) else [answer] if answer else []:
                self.assertLessEqual(one.keys(), names, exchange["name"])
                decision = decode(one)
                told = {name: value for name, value in vars(decision).items() if name in one}
                self.assertEqual(told, one, exchange["name"])
                seen |= one.keys()
        self.assertEqual(seen, names, "each field of a decision is in an exchange")

    def test_the_words_are_the_limiters(self) -> None:
        self.assertEqual(list(get_args(Source)), FILE["sources"])
        self.assertEqual(list(get_args(Outcome)), FILE["outcomes"])
        self.assertEqual(list(get_args(Held)), FILE["holds"])


class Questions(unittest.TestCase):
    def test_what_cannot_be_decided_is_found_before_it_is_sent_and_named(self) -> None:
        user = {"user": "alice"}
        bad: list[tuple[Any, str]] = [
            (Wanted("", user), "limit"),
            (Wanted("orders", {}), "key"),
            (Wanted("orders", {"user": ""}), "key.user"),
            (Wanted("orders", {"user": 7}), "key.user"),  # type: ignore[dict-item]
            (Wanted("orders", user, -1), "cost"),
            (Wanted("orders", user, 10**12 + 1), "cost"),
            (Wanted("orders", user, 0.5), "cost"),  # type: ignore[arg-type]
            (Wanted("orders", user, True), "cost"),
            (Wanted("orders", user, plan=1), "plan"),  # type: ignore[arg-type]
        ]
        for wanted, field in bad:
            with self.assertRaises(BadRequest) as raised:
                encode(wanted)
            self.assertEqual(raised.exception.field, field)
            self.assertIsInstance(raised.exception, ValueError)
            self.assertFalse(raised.exception.may_have_charged)
        with self.assertRaises(BadRequest):
            encode_all([])


class Answers(unittest.TestCase):
    ANSWER = {"allowed": True, "limit": "a", "remaining": 1, "retry_after_ms": 0, "reset_ms": 5, "source": "table"}

    def test_what_is_no_decision_is_not_taken_for_one(self) -> None:
        decode(self.ANSWER)
        for name in self.ANSWER:
            with self.assertRaises(OutcomeUnknown):
                decode({key: value for key, value in self.ANSWER.items() if key != name})
        for name, value in {"allowed": 1, "remaining": "1", "retry_after_ms": 0.5, "reset_ms": True, "source": None}.items():
            with self.assertRaises(OutcomeUnknown):
                decode({**self.ANSWER, name: value})
        others: list[object] = [None, [], "allowed", {"errorType": "BadRequest"}]
        for answer in others:
            with self.assertRaises(OutcomeUnknown):
                decode(answer)
        for answers in (others[:1], self.ANSWER):
            with self.assertRaises(OutcomeUnknown):
                decode_all(answers, 2)

    def test_a_newer_limiter_may_tell_more(self) -> None:
        self.assertEqual(decode({**self.ANSWER, "mood": "sunny"}), decode(self.ANSWER))


class Documentation(unittest.TestCase):
    def test_it_shows_what_is_run(self) -> None:
        here = Path(__file__).parent
        readme = (here.parent / "README.md").read_text()
        for name in ("snippet.py", "signing.py"):
            self.assertIn(f"```python\n{(here / name).read_text()}", readme, name)


if __name__ == "__main__":
    unittest.main()
