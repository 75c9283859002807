import boto3
from botocore.config import Config
from tollgate_client import DirectLimiter, OutcomeUnknown, Unavailable

# boto3 must not send a charge again by itself; what was throttled, the limiter's client does.
config = Config(connect_timeout=1, read_timeout=3, retries={"total_max_attempts": 1})
limiter = DirectLimiter(boto3.client("lambda", config=config), "limiter")
try:
    decision = limiter.decide("orders", {"user": "alice"}, cost=1, plan="free")
    if not decision.allowed:
        print(f"come back in {decision.retry_after_ms} ms")
except (Unavailable, OutcomeUnknown) as error:
    print(f"nobody decided, and alice may have been charged: {error}")
