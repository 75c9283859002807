"""Against the limiter itself: `TOLLGATE_URL` is a `tollgate dev`, `TOLLGATE_LAMBDA_URL` has Lambda's API with the function `limiter`.

With boto3 installed, that is who invokes; else the same request is made without it.
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import unittest
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

from tollgate_client import BadRequest, Decision, DirectLimiter, HttpLimiter, Invoker, Limiter, Wanted

HERE = Path(__file__).parent


class _Unsigned:
    """What `boto3.client("lambda")` does, without a signature."""

    def __init__(self, url: str) -> None:
        self._url = url

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        url = f"{self._url}/2015-03-31/functions/{FunctionName}/invocations"
        response = urllib.request.urlopen(urllib.request.Request(url, data=Payload))
        return {"Payload": response, "FunctionError": response.headers.get("X-Amz-Function-Error")}


def lambda_client(url: str) -> Invoker:
    try:
        import boto3
        from botocore.config import Config
    except ImportError:
        return _Unsigned(url)
    config = Config(connect_timeout=1, read_timeout=60, retries={"total_max_attempts": 1})
    keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local", "region_name": "us-east-1"}
    client: Invoker = boto3.client("lambda", endpoint_url=url, config=config, **keys)
    return client


class Conversation(unittest.TestCase):
    def speaks(self, limiter: Limiter, who: str) -> None:
        key = {"user": who}
        first = limiter.decide("few", key)
        self.assertEqual((first.allowed, first.remaining, first.retry_after_ms), (True, 1, 0))
        self.assertTrue(limiter.decide("few", key).allowed)
        denied = limiter.decide("few", key)
        self.assertFalse(denied.allowed)
        self.assertGreater(denied.retry_after_ms or 0, 0)
        never = limiter.decide("few", key, cost=3)
        self.assertEqual((never.allowed, never.never_fits, never.retry_after_ms), (False, True, None))
        orders, few = limiter.decide_all([Wanted("orders", key, plan="pro"), Wanted("few", key)])
        self.assertEqual((orders.allowed, few.allowed, orders.retry_after_ms), (False, False, 0))
        self.assertEqual(limiter.decide("orders", key, plan="pro").remaining, 99, "nothing was charged")
        with self.assertRaisesRegex(BadRequest, "did you mean `orders`"):
            limiter.decide("order", key)

    @unittest.skipUnless("TOLLGATE_URL" in os.environ, "TOLLGATE_URL is not set")
    def test_over_http(self) -> None:
        self.speaks(HttpLimiter(os.environ["TOLLGATE_URL"], timeout_s=60), "python-http")

    @unittest.skipUnless("TOLLGATE_LAMBDA_URL" in os.environ, "TOLLGATE_LAMBDA_URL is not set")
    def test_by_direct_invocation(self) -> None:
        client = lambda_client(os.environ["TOLLGATE_LAMBDA_URL"])
        # The test that starts the function tells a name that nobody else has.
        self.speaks(DirectLimiter(client, "limiter"), os.environ["TOLLGATE_USER"])

    @unittest.skipUnless("TOLLGATE_LAMBDA_URL" in os.environ and find_spec("boto3"), "boto3 or TOLLGATE_LAMBDA_URL is not there")
    def test_what_the_documentation_shows(self) -> None:
        local = {
            "AWS_ENDPOINT_URL_LAMBDA": os.environ["TOLLGATE_LAMBDA_URL"],
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        with mock.patch.dict(os.environ, local), contextlib.redirect_stdout(io.StringIO()):
            shown = runpy.run_path(str(HERE / "snippet.py"))
            self.assertIsInstance(shown["decision"], Decision)
            signed = runpy.run_path(str(HERE / "signing.py"))["sign"]("POST", "https://limiter.example/v1/decisions", {"a": "b"}, b"{}")
        self.assertTrue(signed["Authorization"].startswith("AWS4-HMAC-SHA256 "), signed)
        self.assertEqual(signed["a"], "b")


if __name__ == "__main__":
    unittest.main()
