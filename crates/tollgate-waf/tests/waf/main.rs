//! Rules of AWS WAF: what a policy comes to, what gets past it, what WAF would refuse, and how an ACL is brought to it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod bypass;
mod converge;
mod evaluate;
mod fake;
mod kept_out;
mod moto;
mod origins;
mod render;

use serde_json::Value;
use std::net::IpAddr;
use tollgate_policy::Policy;
use tollgate_waf::evaluate::Rules;
use tollgate_waf::{WebAcl, offline, output, render as rendering};

/// The sample that ships.
const SAMPLE: &str = include_str!("../../../../infra/tollgate.toml");

/// The address that requests come from.
const CLIENT: &str = "198.51.100.7";

fn acl(policy: &str) -> WebAcl {
    let policy = Policy::parse(policy).unwrap_or_else(|findings| panic!("{findings}")).policy;
    rendering::web_acl(&policy).expect("an edge")
}

/// What the API is sent to make an ACL.
fn sent(acl: &WebAcl) -> Value {
    let calls = output::calls(acl);
    let create = calls.as_array().unwrap().iter().find(|call| call["operation"] == "CreateWebACL");
    create.unwrap()["input"].clone()
}

/// The rules of a policy as WAF would have them, read by code that knows nothing of how they are made.
fn rules(policy: &str) -> Rules {
    offline(&acl(policy))
}

fn client() -> IpAddr {
    CLIENT.parse().unwrap()
}

/// A policy whose rules are these.
fn edge(rest: &str) -> String {
    format!("version = 1\n{rest}")
}
