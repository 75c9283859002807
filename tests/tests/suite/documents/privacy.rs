//! The table of `privacy.md`, beside every item that the sample API leaves behind: its name, its attributes, its lifetime.

use super::read;
use crate::dev::Dev;
use crate::harness::raw;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const PAGE: &str = "crates/tollgate/guide/privacy.md";

/// A line of the table.
struct Row {
    /// How the names of its items begin.
    prefixes: Vec<String>,
    attributes: Vec<String>,
    /// `None`: until somebody removes it.
    lifetime: Option<Duration>,
}

fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn lifetime(cell: &str) -> Option<Duration> {
    let (n, unit) = cell.split_once(' ')?;
    let secs = BTreeMap::from([("minutes", 60), ("hours", 3600), ("days", 86_400)]);
    Some(Duration::from_secs(n.parse::<u64>().ok()? * secs[unit]))
}

fn rows() -> Vec<Row> {
    let page = read(PAGE);
    let table = page.lines().skip_while(|line| !line.starts_with("| item (`pk`)")).skip(2);
    let row = |line: &str| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        // Names begin as they are told, up to the first word in capitals.
        let prefix = |name: String| name.split(|c: char| c.is_ascii_uppercase()).next().unwrap().to_owned();
        Row {
            prefixes: quoted(cells[0]).into_iter().map(prefix).collect(),
            attributes: quoted(cells[1]),
            lifetime: lifetime(cells[2]),
        }
    };
    table.take_while(|line| line.starts_with('|')).map(row).collect()
}

/// Plays what people do: an order, sign-ins, a code that is verified, factors that are set up.
fn play(dev: &Dev) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let alice = format!("x-dev-principal: user=alice,tenant=acme,plan=free,origin_jti=s1,auth_time={now}\r\n");
    let by = |method: &str, path: &str, body: &str| dev.ask_with(method, path, &alice, body).2;
    by("POST", "/api/orders", "{}");
    for (account, password) in [("marked-a@x.org", "guess"), ("marked-b@x.org", "correct horse")] {
        let body = json!({ "username": account, "password": password });
        dev.ask("POST", "/api/auth/login", &body.to_string());
    }
    let sent = by("POST", "/api/auth/otp/send", r#"{"purpose":"step-up"}"#);
    let outbox = dev.ask("GET", "/dev/outbox", "").2;
    let code = json!({ "challenge": sent["challenge"], "purpose": "step-up", "code": outbox[0]["code"] });
    assert_eq!(by("POST", "/api/auth/otp/verify", &code.to_string())["verified"], true);
    assert!(by("POST", "/api/mfa/recovery/generate", "")["codes"].is_array());
    assert!(by("POST", "/api/mfa/recovery/request", "")["secret"].is_string());
    assert!(by("POST", "/api/mfa/totp/enroll", "")["otpauth_uri"].is_string());
    assert!(by("POST", "/api/mfa/passkeys/register", "")["challenge"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_item_is_one_that_the_page_on_privacy_tells_of() {
    let dev = Dev::start(&["--clock", "manual"]);
    play(&dev);
    let stats = dev.stats();
    let (endpoint, table) = (stats["dynamodb_endpoint"].as_str().unwrap(), stats["table"].as_str().unwrap());
    let scanned = raw(endpoint).scan().table_name(table);
    let items = Box::pin(scanned.send()).await.unwrap().items.unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let rows = rows();
    let mut longest = vec![None; rows.len()];
    for item in &items {
        let pk = item["pk"].as_s().unwrap();
        let shown = format!("{item:?}");
        for personal in ["marked-", "40721234567"] {
            assert!(!shown.contains(personal), "{shown}");
        }
        let nth = rows.iter().position(|row| row.prefixes.iter().any(|prefix| pk.starts_with(prefix)));
        let nth = nth.unwrap_or_else(|| panic!("the page has no row for {pk}"));
        for name in item.keys().filter(|name| !["pk", "expires_at"].contains(&name.as_str())) {
            // `orders.tat` is `tat` of the limit `orders`, `e:+4072123` is `e` of that block.
            let plain = name.rsplit('.').next().unwrap().split(':').next().unwrap();
            assert!(rows[nth].attributes.iter().any(|told| told == plain), "{pk} has {name}");
        }
        let expires = item.get("expires_at").map(|at| Duration::from_secs(at.as_n().unwrap().parse().unwrap()));
        assert_eq!(expires.is_some(), rows[nth].lifetime.is_some(), "{pk}");
        longest[nth] = longest[nth].max(Some(expires.map_or(Duration::ZERO, |at| at - now)));
    }
    for (row, longest) in rows.iter().zip(longest) {
        let longest = longest.unwrap_or_else(|| panic!("nothing was played for {:?}", row.prefixes));
        let Some(told) = row.lifetime else { continue };
        // No item lives longer, and what is told is not far from what is there.
        assert!(longest <= told && longest >= told / 2, "{:?}: {longest:?} of {told:?}", row.prefixes);
    }
}
