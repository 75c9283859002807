//! Tests at the level where the promises are made: the store, the command, the development server.
//!
//! Store tests run on an embedded DynamoDB, or on the endpoint that `TOLLGATE_TEST_ENDPOINT` names (the table
//! `tollgate-test` is created there if it is missing). Every test has keys of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs, unreachable_pub)]

mod attacks;
mod audit;
mod authenticator;
mod bench;
mod browser;
mod cli;
mod clients;
mod coalesce;
mod codes;
mod conformance;
mod console;
mod contention;
mod corpus;
mod deadline;
mod deploy;
mod dev;
mod documents;
mod examples;
mod factor_changes;
mod factors;
mod failure;
mod faults;
mod figures;
mod harness;
mod holds;
mod issuer;
mod leases;
mod login;
mod mfa;
mod mfa_page;
mod otp;
mod pacer;
mod passkeys;
mod penalties;
mod prices;
mod pumping;
mod recoveries;
mod regressions;
mod replays;
mod reported_callers;
mod revisions;
mod rotation;
mod sessions;
mod settling;
mod several_keys;
mod shards;
mod step_up;
mod stores;
mod table;
mod tenants;
mod through;
mod waf;
mod why;
mod windows;
mod writes;
