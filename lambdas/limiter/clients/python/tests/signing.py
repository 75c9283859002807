import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

session = boto3.Session()


def sign(method, url, headers, body):
    request = AWSRequest(method, url, headers, body)
    SigV4Auth(session.get_credentials(), "lambda", session.region_name).add_auth(request)
    return dict(request.headers)
