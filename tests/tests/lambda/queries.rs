//! The saved queries and the dashboard's, held to lines that the real functions print: a field that is renamed breaks them here, and not
//! in a console in the middle of the night.

use crate::events::{Sender, unsigned};
use crate::harness::{Function, LIMITER, SAMPLE_API, TABLE, TaskRoot, endpoint, unique};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn template() -> String {
    std::fs::read_to_string(format!("{}/../infra/template.yaml", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Names and texts of all queries of the template.
fn queries() -> Vec<(String, String)> {
    let template = template();
    let saved = template.split("Type: AWS::Logs::QueryDefinition\n").skip(1).map(|from| {
        let name = from.split("/${AWS::StackName}/").nth(1).unwrap().split('"').next().unwrap();
        let text = from.split("QueryString: |\n").nth(1).unwrap();
        let lines = text.lines().take_while(|line| line.starts_with("        "));
        (name.to_owned(), lines.map(|line| line.trim().to_owned() + "\n").collect::<String>())
    });
    let shown = template.split("\"query\": \"${LogSources} | ").skip(1).map(|from| {
        let text = from.split("\" } }").next().unwrap().replace("\\\"", "\"");
        ("the dashboard's".to_owned(), text)
    });
    saved.chain(shown).collect()
}

/// Words of Logs Insights ("CloudWatch Logs Insights language query syntax") that these queries use.
const WORDS: [&str; 21] = [
    "filter",
    "stats",
    "sort",
    "limit",
    "by",
    "as",
    "and",
    "or",
    "desc",
    "ispresent",
    "count",
    "sum",
    "min",
    "max",
    "latest",
    "bin",
    "5m",
    "fields",
    "asc",
    "like",
    "not",
];

/// The fields that a query reads: names that are neither words of the language nor what the query itself has named.
fn fields(query: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let mut read = BTreeSet::new();
    let code = query.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join(" ");
    // Without what stands in quotes.
    let code = code.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    for plain in code.split('|') {
        let is_limit = plain.trim().strip_prefix("limit ").is_some_and(|n| n.trim().parse::<u32>().is_ok());
        let words: Vec<&str> = plain
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '@'))
            .filter(|word| !word.is_empty() && !is_limit)
            .collect();
        let aliases: BTreeSet<&str> = words.windows(2).filter(|pair| pair[0] == "as").map(|pair| pair[1]).collect();
        for (place, word) in words.iter().enumerate() {
            // The limit of ours that is called `limit` is no command.
            let is_word = WORDS.contains(word) && !(*word == "limit" && place > 0);
            let is_number = word.bytes().all(|b| b.is_ascii_digit());
            if !is_word && !is_number && !word.starts_with('@') && !aliases.contains(word) && !named.contains(*word) {
                read.insert((*word).to_owned());
            }
        }
        named.extend(aliases.into_iter().map(str::to_owned));
    }
    read
}

#[test]
fn the_reading_of_queries_finds_fields_and_nothing_else() {
    let query = "# a comment\nfilter target = \"a | b\" and ispresent(key_ref)\n| stats count(*) as n, max(wait) as longest by limit, bin(5m)\n\
        | filter n > longest + 2\n| sort n desc\n| limit 5";
    let expected = ["key_ref", "limit", "target", "wait"].map(str::to_owned);
    assert_eq!(fields(query), BTreeSet::from(expected));
}

fn lines(printed: &str) -> Vec<Value> {
    printed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line.get("_aws").is_none())
        .collect()
}

const POLICY: &str = "version = 1\n[plans]\nnames = ['free']\ndefault = 'free'\n\
    [identity]\ntenant = { from = 'claims.tenant', log = 'plain' }\napi_key = { from = 'api_key', log = 'plain' }\n\
    [limits.orders]\nkey = ['api_key']\nrate = '1/year'\nplans.free = { rate = '1/year' }\npenalty = { first = '1h' }\n\
    [limits.closed]\nkey = ['user']\nrate = '1/year'\non_store_failure = 'closed'\n\
    [[routes]]\nmatch = 'GET /api/search'\ncharge = ['orders']\n[[routes]]\nmatch = 'GET /api/export'\ncharge = ['closed']\n";

/// What the sample API prints of a caller that is denied again and again. A REST API tells the key and its id.
async fn denied(key: &str, tenant: &str) -> Vec<Value> {
    let url = endpoint().await;
    let variables = [("TOLLGATE_TABLE", TABLE), ("TOLLGATE_ENDPOINT_URL", url.as_str())];
    let mut api = Function::printing(SAMPLE_API, TaskRoot::with_policy(POLICY), &variables).await;
    let mut event = unsigned(Sender::RestApi, "GET", "/api/search", "");
    event["requestContext"]["identity"]["apiKey"] = "the-key-itself".into();
    event["requestContext"]["identity"]["apiKeyId"] = key.into();
    event["requestContext"]["authorizer"] = json!({ "claims": { "sub": "alice", "tenant": tenant } });
    event["requestContext"]["requestId"] = "api-request-1".into();
    let burst = usize::try_from(tollgate::logs::LINES_PER_SECOND).unwrap() + 2;
    for _ in 0..burst {
        api.respond(&event).await;
    }
    // The line after a second of too many says how many were kept back.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    api.respond(&event).await;
    let printed = api.printed();
    assert!(!printed.contains("the-key-itself"), "{printed}");
    lines(&printed)
}

/// What it prints where there is no table.
async fn failed() -> Vec<Value> {
    let url = endpoint().await;
    let variables = [("TOLLGATE_TABLE", "no-such-table"), ("TOLLGATE_ENDPOINT_URL", url.as_str())];
    let mut api = Function::printing(SAMPLE_API, TaskRoot::with_policy(POLICY), &variables).await;
    let mut event = unsigned(Sender::RestApi, "GET", "/api/export", "");
    event["requestContext"]["authorizer"] = json!({ "claims": { "sub": "alice" } });
    assert_eq!(api.respond(&event).await.status, 503);
    lines(&api.printed())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_that_a_query_reads_is_in_a_line_that_a_function_has_printed() {
    let (key, tenant) = (unique("keyid"), unique("acme"));
    let denied = denied(&key, &tenant).await;
    let denials: Vec<_> = denied.iter().filter(|line| line["target"] == "tollgate::denials").collect();
    for line in &denials {
        assert_eq!((&line["api_key"], &line["tenant"]), (&json!(key), &json!(tenant)), "{line}");
    }
    assert!(!denials.is_empty());
    let mut printed: BTreeSet<String> = BTreeSet::new();
    for line in denied.iter().chain(&failed().await) {
        printed.extend(
            line.as_object().unwrap().iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name.clone()),
        );
    }
    // What the gateway prints, the template says.
    let template = template();
    let format: String = template
        .split("Format: >-\n")
        .nth(1)
        .unwrap()
        .lines()
        .take_while(|line| line.contains('"'))
        .map(str::trim)
        .collect();
    let gateway: Value = serde_json::from_str(&format).unwrap();
    printed.extend(gateway.as_object().unwrap().keys().cloned());

    let queries = queries();
    assert_eq!(queries.len(), 7, "five are saved, and two are the dashboard's: {queries:?}");
    for (name, query) in &queries {
        let read = fields(query);
        assert!(!read.is_empty(), "{name}");
        let missing: Vec<_> = read.difference(&printed).collect();
        assert!(missing.is_empty(), "{name}: no line has {missing:?} of {read:?}");
    }
}

/// An HTTP API has no keys of its own: what an authorizer calls one may be the key itself, and is told as a hash.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_no_gateways_id_is_told_as_the_reference_that_operators_can_look_up() {
    let url = endpoint().await;
    let variables = [("TOLLGATE_TABLE", TABLE), ("TOLLGATE_ENDPOINT_URL", url.as_str())];
    let secrets: tollgate::KeySecrets = crate::harness::SECRETS.1.parse().unwrap();
    let key = unique("secret");
    let reference = secrets.reference(&tollgate::Key::new([("api_key", key.as_str())]).unwrap());

    let mut api = Function::printing(SAMPLE_API, TaskRoot::with_policy(POLICY), &variables).await;
    let mut event = unsigned(Sender::HttpApi, "GET", "/api/search", "");
    event["requestContext"]["authorizer"] = json!({ "jwt": { "claims": { "api_key": key }, "scopes": null } });
    let mut limiter = Function::printing(LIMITER, TaskRoot::with_policy(POLICY), &variables).await;
    for _ in 0..2 {
        api.respond(&event).await;
        limiter.invoke(&json!({ "limit": "orders", "key": { "api_key": key } })).await.unwrap();
    }
    for printed in [api.printed(), limiter.printed()] {
        assert!(!printed.contains(&key), "{printed}");
        let lines = lines(&printed);
        let denial = lines.iter().find(|line| line["target"] == "tollgate::denials").expect("a denial");
        assert_eq!(denial["api_key"].as_str(), reference.as_deref(), "{denial}");
        assert_eq!(denial["key_ref"], denial["api_key"], "the key is that alone");
    }
}
