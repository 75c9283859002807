//! The Lambda functions as Lambda runs them: the executables, against a Runtime API on this machine and an embedded
//! DynamoDB (or the endpoint that `TOLLGATE_TEST_ENDPOINT` names), event by event.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs, unreachable_pub)]

mod authorizer;
mod aws;
mod direct;
mod emf;
mod events;
mod example;
mod grants;
mod harness;
mod http;
mod init;
#[path = "../suite/issuer.rs"]
mod issuer;
mod login;
mod mfa;
mod moto;
mod otp;
mod printed;
mod proxy;
mod queries;
mod sample_api;
mod sandboxes;
mod webhook;
#[path = "../wire.rs"]
mod wire;
