//! The policy file from the outside: what is accepted, what is refused and where, and what a policy answers.
#![allow(clippy::expect_used, clippy::panic)]

mod charges;
mod device;
mod edge;
mod findings;
mod identity;
mod layers;
mod lookups;
mod mistakes;
mod robustness;
mod schema;

use tollgate_policy::{Diagnostics, Policy};

/// The sample policy that ships.
const SAMPLE: &str = include_str!("../../../../infra/tollgate.toml");

/// A small policy that uses most of the format.
const FULL: &str = r#"version = 1
revision = 7

[identity]
account   = { body = "username", fold = "email" }
mobile    = { from = "claims.phone_number", fold = "phone", region = "IN" }
staff     = { from = "header.x-staff", personal = true }
order     = "path.id"
region    = "header.X-Region"
client_ip = { trusted_proxies = ["10.0.0.0/8", "2001:db8::/32"], ipv6_prefix = 56 }

[plans]
names   = ["free", "pro", "team"]
default = "free"

[limits.orders]
key         = ["user"]
rate        = "50/h"
plans.pro   = { rate = "500/h", burst = 100 }
message     = { en = "{limit}: {rate}, {burst}, {plan}. Try again in {retry_after}." }
upgrade_url = "/billing"
on_change   = "keep"

[limits.burst]
key              = ["user"]
rate             = "10/s"
burst            = 20
algorithm        = "token-bucket"
own_item         = false
mode             = "enforce"
on_store_failure = "closed"
headers          = "hidden"

[limits.units]
key     = ["user ?? client_ip"]
rate    = "600/min"
burst   = 100
message = "Slow down."

[limits.by-order]
key  = ["tenant", "order"]
rate = "5/15min"

[[routes]]
match            = "POST /api/orders"
charge           = ["orders", { limit = "burst", cost = 2 }]
on_store_failure = "open"

[[routes]]
match  = "GET,HEAD /api/orders/{id}"
charge = ["by-order"]
cors   = false

[[routes]]
match  = "* /api/*"
charge = [{ limit = "units", cost = 5 }]

[[exempt]]
match = "GET /healthz"
why   = "a rate-limited health check lies"

[http]
legacy_headers = ["X-RateLimit"]
cors           = { origins = ["https://app.example.com", "http://localhost:3000"], credentials = true }
"#;

fn policy(text: &str) -> Policy {
    match Policy::parse(text) {
        Ok(parsed) => parsed.policy,
        Err(findings) => panic!("{}", findings.render("policy")),
    }
}

fn refused(text: &str) -> Diagnostics {
    match Policy::parse(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(findings) => findings,
    }
}

/// `line:column: severity: message` of each finding.
fn lines(findings: &Diagnostics) -> Vec<String> {
    findings.iter().map(|d| format!("{}:{}: {}: {}", d.line, d.column, d.severity, d.message)).collect()
}
