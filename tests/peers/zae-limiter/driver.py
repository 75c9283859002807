"""zae-limiter's part of the comparison: does the orders of `src/protocol.rs`, one line of JSON each.

Usage: driver.py ENDPOINT SETTING, with the packages of requirements.txt.
"""

import asyncio
import json
import random
import sys
import time
import warnings

from botocore.config import Config
from zae_limiter import Limit, RateLimiter, RateLimitExceeded, Repository

STACK = "zae-limiter"
ENDPOINT = sys.argv[1]
CAPACITY = {"scarce": 10, "plenty": 1_000_000_000}

# The library makes its client itself, with 10 connections; its own load test gives the SDK's default more, and 50 is what
# the other peer's SDK has.
Config.OPTION_DEFAULTS["max_pool_connections"] = 50

clients: list[RateLimiter] = []


async def client() -> RateLimiter:
    """As the documentation says: a repository that is opened, limits that are stored, speculative writes by default.

    Explicit `limits` would skip what is stored, and with it the cache of rejections.
    """
    if not clients:
        await provision()
    repository = await Repository.open(stack=STACK, region="us-east-1", endpoint_url=ENDPOINT)
    return RateLimiter(repository=repository)


async def provision() -> None:
    """The table by the library's own definition, without CloudFormation and the Lambda functions, and the stored limits."""
    with warnings.catch_warnings():
        # `Repository.open` would deploy the stack; making one directly is what is left for a table without one.
        warnings.simplefilter("ignore", DeprecationWarning)
        bare = Repository(name=STACK, region="us-east-1", endpoint_url=ENDPOINT)
    await bare.create_table()
    await bare.close()
    repository = await Repository.open(stack=STACK, region="us-east-1", endpoint_url=ENDPOINT)
    limiter = RateLimiter(repository=repository)
    for limit, capacity in CAPACITY.items():
        await limiter.set_resource_defaults(limit, [Limit.per_hour("calls", capacity)])
    await repository.close()


async def decide(limiter: RateLimiter, limit: str, key: str) -> bool:
    try:
        async with limiter.acquire(entity_id=key, resource=limit, consume={"calls": 1}):
            return True
    except RateLimitExceeded:
        return False


class Tally:
    def __init__(self) -> None:
        self.allowed = self.denied = self.failed = 0
        self.failure: str | None = None
        self.latencies: list[float] = []
        self.began = time.perf_counter()

    async def one(self, limiter: RateLimiter, limit: str, key: str) -> None:
        asked = time.perf_counter()
        try:
            if await decide(limiter, limit, key):
                self.allowed += 1
            else:
                self.denied += 1
        except Exception as error:
            self.failed += 1
            self.failure = self.failure or f"{type(error).__name__}: {error}"
        self.latencies.append(time.perf_counter() - asked)

    def told(self) -> dict:
        micros = (time.perf_counter() - self.began) * 1e6
        ordered = sorted(self.latencies)

        def at(share: float) -> int:
            return round(ordered[max(-int(-len(ordered) * share // 1) - 1, 0)] * 1e6) if ordered else 0

        told = {"allowed": self.allowed, "denied": self.denied, "failed": self.failed, "failure": self.failure}
        return told | {"micros": round(micros), "p50_us": at(0.5), "p99_us": at(0.99)}


async def open_clients(order: dict) -> Tally:
    while len(clients) < order["clients"]:
        clients.append(await client())
    return Tally()


async def decide_each(order: dict) -> Tally:
    tally = Tally()
    calls = (tally.one(clients[i % len(clients)], "scarce", key) for i, key in enumerate(order["keys"]))
    if order["at_once"]:
        await asyncio.gather(*calls)
    else:
        for call in calls:
            await call
    return tally


async def fill(order: dict) -> Tally:
    tally = Tally()
    numbers = iter(range(order["keys"]))

    async def caller() -> None:
        for number in numbers:
            await tally.one(clients[0], "plenty", f"{order['prefix']}{number}")

    await asyncio.gather(*(caller() for _ in range(order["callers"])))
    return tally


async def load(order: dict) -> Tally:
    tally = Tally()
    until = time.monotonic() + order["seconds"]

    async def caller() -> None:
        while time.monotonic() < until:
            await tally.one(clients[0], "plenty", f"{order['prefix']}{random.randrange(order['keys'])}")

    await asyncio.gather(*(caller() for _ in range(order["callers"])))
    return tally


ORDERS = {"open": open_clients, "decide": decide_each, "fill": fill, "load": load}


async def main() -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        tally = await ORDERS[order["order"]](order)
        print(json.dumps(tally.told()), flush=True)


asyncio.run(main())
