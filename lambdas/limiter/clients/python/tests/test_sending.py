"""What is sent, how often, and what each failure is told as; against real sockets, and errors as botocore words them."""

from __future__ import annotations

import io
import json
import socket
import threading
import unittest
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from typing import Any, cast

from tollgate_client import (
    BadRequest,
    DirectLimiter,
    HttpLimiter,
    OutcomeUnknown,
    Refused,
    Throttled,
    TollgateError,
    Unavailable,
    Unreachable,
)

ALLOWED = {"allowed": True, "limit": "a", "remaining": 1, "retry_after_ms": 0, "reset_ms": 5, "source": "table"}
ALICE = {"user": "alice"}


def no_sleep(_: float) -> None:
    pass


class ClientError(Exception):
    """As botocore's."""

    def __init__(self, code: str, status: int) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


class HTTPClientError(Exception):
    """As botocore's, whose names are its own."""


class ReadTimeoutError(HTTPClientError):
    pass


class ConnectTimeoutError(HTTPClientError):
    pass


class Lambda:
    """Answers, or raises, what it is given, one after the other."""

    def __init__(self, *script: object) -> None:
        self.script = list(script)
        self.payloads: list[bytes] = []

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        assert FunctionName == "limiter"
        self.payloads.append(Payload)
        answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        failed = isinstance(answer, dict) and "errorType" in answer
        told: dict[str, Any] = {"FunctionError": "Unhandled"} if failed else {}
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode()), **told}


class Direct(unittest.TestCase):
    def fails(self, kind: type[Exception], times: int, *script: object) -> Exception:
        client = Lambda(*script)
        with self.assertRaises(kind) as raised:
            DirectLimiter(client, "limiter", sleep=no_sleep).decide("a", ALICE)
        self.assertEqual(len(client.payloads), times, raised.exception)
        return raised.exception

    def test_the_payload_is_the_question(self) -> None:
        client = Lambda(ALLOWED, [ALLOWED])
        limiter = DirectLimiter(client, "limiter")
        self.assertTrue(limiter.decide("a", ALICE, cost=2, plan="pro").allowed)
        self.assertEqual(json.loads(client.payloads[0]), {"limit": "a", "key": ALICE, "cost": 2, "plan": "pro"})

    def test_what_may_have_been_charged_is_asked_once(self) -> None:
        for answer in (
            ReadTimeoutError("read timed out"),
            ConnectionResetError(),
            TimeoutError(),
            ClientError("ServiceException", 500),
            {"errorType": "Sandbox.Timedout", "errorMessage": "Task timed out after 3.00 seconds"},
            {"errorType": "Runtime.ExitError", "errorMessage": "exit status 1"},
            "no decision",
        ):
            error = self.fails(OutcomeUnknown, 1, answer)
            self.assertTrue(cast(TollgateError, error).may_have_charged)
        closed = {"errorType": "LimiterUnavailable", "errorMessage": "the limiter cannot decide now"}
        error = self.fails(Unavailable, 1, closed)
        self.assertTrue(cast(TollgateError, error).may_have_charged)

    def test_what_was_throttled_is_asked_again_a_few_times(self) -> None:
        throttled = ClientError("TooManyRequestsException", 429)
        self.fails(Throttled, 3, throttled, throttled, throttled)
        client = Lambda(throttled, ALLOWED)
        self.assertTrue(DirectLimiter(client, "limiter", sleep=no_sleep).decide("a", ALICE).allowed)
        client = Lambda(throttled)
        with self.assertRaises(Throttled):
            DirectLimiter(client, "limiter", throttle_retries=0).decide("a", ALICE)

    def test_what_was_not_sent_is_told_as_that(self) -> None:
        error = self.fails(Unreachable, 1, ConnectTimeoutError("connect timed out"))
        self.assertFalse(cast(TollgateError, error).may_have_charged)

    def test_a_clients_own_errors_pass_as_they_are(self) -> None:
        denied = ClientError("AccessDeniedException", 403)
        self.assertIs(self.fails(ClientError, 1, denied), denied)
        self.fails(KeyError, 1, KeyError("NoCredentialsError"))

    @unittest.skipUnless(find_spec("botocore"), "botocore is not there")
    def test_botocores_own_errors_are_known(self) -> None:
        from botocore import exceptions as of

        at: dict[str, Any] = {"endpoint_url": "https://lambda.example", "proxy_url": "http://proxy.example", "error": "x"}
        for kind in (of.ConnectTimeoutError, of.EndpointConnectionError, of.ProxyConnectionError):
            self.fails(Unreachable, 1, kind(**at))
        part = {"actual_bytes": 1, "expected_bytes": 2}
        kinds = (of.ReadTimeoutError, of.ConnectionClosedError, of.SSLError, of.HTTPClientError, of.ResponseStreamingError)
        for error in [kind(**at) for kind in kinds] + [of.IncompleteReadError(**part)]:
            self.fails(OutcomeUnknown, 1, error)
        for code, status, told in (("TooManyRequestsException", 429, Throttled), ("ServiceException", 500, OutcomeUnknown)):
            response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
            self.fails(told, 3 if status == 429 else 1, *[of.ClientError(response, "Invoke")] * 3)
        self.fails(of.NoCredentialsError, 1, of.NoCredentialsError())

    def test_bad_input_is_a_value_error(self) -> None:
        error = self.fails(BadRequest, 1, {"errorType": "BadRequest", "errorMessage": "unknown limit"})
        self.assertIsInstance(error, ValueError)


@contextmanager
def server(*script: tuple[int, object]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that answers so, one request after the other, and what it was sent."""
    answers, seen = list(script), list[dict[str, str]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            seen.append({**{name.lower(): value for name, value in self.headers.items()}, "body": body, "path": self.path})
            status, answer = answers.pop(0)
            if status == 0:  # no answer at all
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            sent = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    http = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}", seen
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


class Http(unittest.TestCase):
    def test_each_answer_that_is_no_decision_has_its_error_and_is_asked_once(self) -> None:
        cases: list[tuple[int, object, type[TollgateError]]] = [
            (400, {"error": "bad_request", "message": "unknown limit"}, BadRequest),
            (403, {"error": "forbidden", "message": "sign it"}, Refused),
            (403, {"Message": "Forbidden"}, Refused),
            (404, {"error": "not_found", "message": "x"}, Refused),
            (500, {"message": "Internal Server Error"}, OutcomeUnknown),
            (502, {"message": "Bad Gateway"}, OutcomeUnknown),
            (503, {"error": "limiter_unavailable", "message": "x"}, Unavailable),
            (503, {"message": "Service Unavailable"}, OutcomeUnknown),
            (504, {"message": "Endpoint request timed out"}, OutcomeUnknown),
            (200, {"hello": "world"}, OutcomeUnknown),
            (0, None, OutcomeUnknown),
        ]
        for status, answer, kind in cases:
            with server((status, answer)) as (url, seen), self.assertRaises(kind) as raised:
                HttpLimiter(url, sleep=no_sleep).decide("a", ALICE)
            self.assertEqual((type(raised.exception), len(seen)), (kind, 1), (status, answer))

    def test_only_a_429_of_the_gateway_is_asked_again(self) -> None:
        with server((429, {"message": "Too Many Requests"}), (200, ALLOWED)) as (url, seen):
            self.assertTrue(HttpLimiter(url, sleep=no_sleep).decide("a", ALICE).allowed)
            self.assertEqual(len(seen), 2)
            self.assertEqual(seen[0]["body"], seen[1]["body"])

    def test_a_timeout_may_have_been_charged(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            limiter = HttpLimiter(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.1)
            with self.assertRaises(OutcomeUnknown) as raised:
                limiter.decide("a", ALICE)
            self.assertTrue(raised.exception.may_have_charged)

    def test_nobody_there_is_unreachable(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as gone:
            port = gone.getsockname()[1]
        with self.assertRaises(Unreachable):
            HttpLimiter(f"http://127.0.0.1:{port}").decide("a", ALICE)

    def test_it_is_signed_by_who_can(self) -> None:
        def sign(method: str, url: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
            self.assertEqual((method, json.loads(body)["limit"]), ("POST", "a"))
            return {**headers, "authorization": f"signed {url}"}

        with server((200, ALLOWED)) as (url, seen):
            HttpLimiter(url + "/", sign).decide("a", ALICE)
        self.assertEqual(seen[0]["path"], "/v1/decisions")
        self.assertEqual(seen[0]["authorization"], f"signed {url}/v1/decisions")
        self.assertEqual(seen[0]["content-type"], "application/json")

    def test_an_address_that_is_none_is_told_at_once(self) -> None:
        with self.assertRaises(ValueError):
            HttpLimiter("limiter.example")


if __name__ == "__main__":
    unittest.main()
