//! Findings: all at once, each at its place, whatever the line ends.

use crate::{FULL, SAMPLE, lines, policy, refused};
use tollgate_policy::{Error, Policy, Severity};

const FIVE: &str = r#"version = 1

[limits.orders]
key = ["usr"]
rate = "50/fortnight"
burts = 20

[limits.units]
key = ["user"]
rate = "600/min"
burst = 0

[[routes]]
match = "POST /ăî/{id}"
charge = [{ limit = "unitz", cost = 5 }]
"#;

#[test]
fn five_mistakes_are_five_errors_each_at_its_place() {
    let findings = refused(FIVE);
    let expected = [
        "4:8: error: key dimension `usr` is not declared",
        "5:8: error: rate \"50/fortnight\" has the unknown unit `fortnight`",
        "6:1: error: unknown key `burts` in [limits.orders]",
        "11:9: error: burst must be a whole number from 1 to 1000000000000, not 0",
        "15:21: error: there is no limit `unitz`",
    ];
    let errors: Vec<_> = findings.iter().filter(|d| d.severity == Severity::Error).cloned().collect();
    assert_eq!(lines(&findings).into_iter().filter(|l| l.contains("error")).collect::<Vec<_>>(), expected);
    assert_eq!(errors[0].help, "did you mean `user`?");
    assert_eq!(errors[2].help, "did you mean `burst`?");
    assert_eq!(errors[4].help, "did you mean `units`?");
}

#[test]
fn findings_are_rendered_with_file_line_column_and_help_and_serialise() {
    let findings = refused("version = 1\n[limits.a]\nkey = [\"user\"]\nrate = \"1/s\"\nbrust = 3\n");
    let expected = "p.toml:5:1: error: unknown key `brust` in [limits.a]\n  help: did you mean `burst`?\n";
    assert_eq!(findings.render("p.toml"), expected);
    let json = serde_json::to_value(&findings).expect("serialises");
    let expected = serde_json::json!([{
        "severity": "error", "line": 5, "column": 1,
        "message": "unknown key `brust` in [limits.a]", "help": "did you mean `burst`?",
    }]);
    assert_eq!(json, expected);
}

#[test]
fn columns_count_characters_and_line_ends_do_not_matter() {
    let text = "version = 1\n[limits.a]\nmessage = { ro = \"ăîșț\", en = 5 }\nkey = [\"user\"]\nrate = \"1/s\"\n";
    let expected = ["3:31: error: a message must be a string, not an integer"];
    assert_eq!(lines(&refused(text)), expected);
    assert_eq!(lines(&refused(&text.replace('\n', "\r\n"))), expected);
    assert_eq!(lines(&refused(&format!("\u{feff}{text}"))), expected);
    let mark_is_no_column = "\u{feff}version = 1\nlimits.a = 5";
    assert_eq!(lines(&refused("\u{feff}version = 2"))[0], lines(&refused("version = 2"))[0]);
    assert!(lines(&refused(mark_is_no_column))[0].starts_with("2:12: error: [limits.a] must be a table"));
    for text in [FULL, SAMPLE] {
        assert_eq!(policy(&text.replace('\n', "\r\n")), policy(text));
        assert_eq!(policy(&format!("\u{feff}{text}")), policy(text));
    }
}

#[test]
fn syntax_errors_and_other_errors_are_reported_together_without_echoes() {
    let text = "version = 1\n[limits.a]\nkey = [\"user\"]\nrate = 50/h\n[limits.b]\nkey = [\"user\"]\nrate = \"5/h\"\nbrust = 1\n";
    let found = lines(&refused(text));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].starts_with("4:") && found[0].contains("not valid TOML"), "{found:?}");
    assert_eq!(found[1], "8:1: error: unknown key `brust` in [limits.b]");

    let unclosed =
        "version = 1\n[limits.a]\nkey = [\"user\"\nrate = \"5/h\"\n[[routes]]\nmatch = \"x\"\ncharge = [\"a\"]\n";
    let found = lines(&refused(unclosed));
    assert_eq!(
        found,
        ["3:14: error: not valid TOML: unclosed array, expected `]`", "6:9: error: \"x\" is not a method and a path"]
    );

    let twice = "version = 1\nversion = 1\n[limits.a]\nkey = [\"user\"]\nrate = \"5/h\"\n";
    let found = refused(twice);
    assert_eq!(lines(&found), ["2:1: error: not valid TOML: duplicate key"]);
    assert_eq!(found.iter().next().map(|d| d.help.as_str()), Some("keep one of the two and remove the other"));
}

#[test]
fn a_line_that_is_not_toml_does_not_hide_what_follows_it() {
    let text = "version = 1\n[limits.a]\nkey = [\"user\"]\nrate: \"5/h\"\n[limits.b]\nkey = [\"usr\"]\nrate = \"5/y\"\n\
                burst 5\n[[routes]]\nmatch = \"GET /x\"\ncharge = [\"c\"]\n[limits.d\nkey = [\"user\"]\n[[routes]]\n\
                match = \"GET /y\"\ncharge = [\"d\"]\n";
    let expected = [
        "4:5: error: not valid TOML: key with no value, expected `=`",
        "6:8: error: key dimension `usr` is not declared",
        "7:8: error: rate \"5/y\" has the unknown unit `y`",
        "8:7: error: not valid TOML: key with no value, expected `=`",
        "11:11: error: there is no limit `c`",
        "12:10: error: not valid TOML: unclosed table, expected `]`",
    ];
    let found = lines(&refused(text));
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        // What the TOML parser says about syntax is its own; that it is said, and in which line, is ours.
        let head =
            if expected.contains("not valid TOML") { &expected[..expected.find(':').unwrap_or(0)] } else { expected };
        assert!(found.starts_with(head), "{found}\n{expected}");
    }
}

#[test]
fn files_are_loaded_and_what_is_wrong_with_them_names_the_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("p.toml");
    assert!(matches!(Policy::load(&path), Err(Error::Read { .. })));
    std::fs::write(&path, SAMPLE).expect("written");
    assert_eq!(Policy::load(&path).expect("valid").policy, policy(SAMPLE));
    std::fs::write(&path, FIVE).expect("written");
    let error = Policy::load(&path).expect_err("invalid").to_string();
    assert!(error.starts_with(&format!("{}:4:8: error: ", path.display())), "{error}");
    std::fs::write(&path, b"version = 1\n# caf\xe9\n").expect("written");
    let error = Policy::load(&path).expect_err("not UTF-8").to_string();
    assert!(error.contains(":2:6: error: the file is not UTF-8"), "{error}");
}

#[test]
fn the_sample_has_neither_errors_nor_warnings() {
    let parsed = Policy::parse(SAMPLE).expect("valid");
    assert!(parsed.warnings.is_empty(), "{}", parsed.warnings.render("infra/tollgate.toml"));
    let schema = "#:schema ../crates/tollgate-policy/tollgate.schema.json";
    assert_eq!(SAMPLE.lines().next(), Some(schema));
}

/// A success proves something of whom a limit is counted by, or it must not clear what others have failed.
#[test]
fn a_success_that_proves_nothing_is_warned_of() {
    let policy = |key: &str, rest: &str| {
        format!(
            "version = 1\n[identity]\naccount = {{ body = \"username\" }}\nhop = \"header.x-hop\"\n\
             device = {{ cookie = \"d\", bound_to = \"account\" }}\n[limits.a]\nkey = [{key}]\nrate = \"5/h\"\n\
             algorithm = \"sliding-log\"\ncount = \"failures\"\n{rest}\n"
        )
    };
    let warns = |text: &str| warnings(text).iter().any(|line| line.contains("a success clears the failures"));
    for key in ["\"client_ip\"", "\"everyone\"", "\"device ?? everyone\"", "\"device ?? client_ip\"", "\"hop\""] {
        assert!(warns(&policy(key, "")), "{key}");
        assert!(!warns(&policy(key, "on_success = \"keep\"")), "{key}");
        assert!(!warns(&policy(key, "on_success = \"clear\"")), "{key}: the policy says that it wants it");
    }
    for key in ["\"account\"", "\"device ?? account\"", "\"user\"", "\"client_ip\", \"account\""] {
        assert!(!warns(&policy(key, "")), "{key}");
    }
}

fn warnings(text: &str) -> Vec<String> {
    lines(&Policy::parse(text).expect("valid").warnings)
}

#[test]
fn a_limit_that_no_route_charges_is_a_warning_only_if_there_are_routes() {
    let limit = "version = 1\n[limits.a]\nkey = [\"user\"]\nrate = \"5/h\"\n";
    assert!(warnings(limit).is_empty());
    let other = "[limits.b]\nkey = [\"user\"]\nrate = \"5/h\"\n[[routes]]\nmatch = \"*\"\ncharge = [\"b\"]\n";
    assert_eq!(warnings(&format!("{limit}{other}")), ["2:9: warning: no route charges limit `a`"]);
}

#[test]
fn a_pacer_belongs_on_no_route_unless_nothing_waits() {
    let text = |burst: &str, charge: &str| {
        format!(
            "version = 1\n[limits.a]\nkey = [\"user\"]\nrate = \"5/h\"\nalgorithm = \"pacer\"\n{burst}\n\
             [limits.b]\nkey = [\"user\"]\nrate = \"5/h\"\n[[routes]]\nmatch = \"*\"\ncharge = [{charge}]\n"
        )
    };
    assert!(warnings(&text("burst = 2", "\"b\"")).is_empty(), "calls that go out are on no route");
    let warning = "12:16: warning: limit `a` is a pacer, and requests of a route pass without waiting";
    assert_eq!(warnings(&text("burst = 2\ndelay = 1", "\"b\", \"a\"")), [warning.replace("12:16", "13:16")]);
    assert_eq!(warnings(&text("burst = 2", "\"b\", \"a\"")), [warning]);
    assert!(warnings(&text("burst = 2\ndelay = 2", "\"b\", \"a\"")).is_empty());
}

#[test]
fn a_key_that_its_sender_chooses_is_a_warning() {
    let text = |key: &str| {
        format!("version = 1\n[identity]\ntag = \"header.x-tag\"\n[limits.a]\nkey = [\"{key}\"]\nrate = \"5/h\"\n")
    };
    assert!(warnings(&text("user")).is_empty());
    for key in ["tag", "user ?? tag"] {
        let found = warnings(&text(key));
        assert!(found.len() == 1 && found[0].starts_with("4:9: warning: limit `a` is counted by `tag`"), "{found:?}");
    }
}

/// A sender who is counted by nothing but what he writes has as many buckets as he likes.
#[test]
fn a_limit_on_nothing_but_what_its_sender_writes_is_a_warning_unless_another_limit_holds_him() {
    let text = |key: &str, charge: &str| {
        format!(
            "version = 1\n[identity]\naccount = {{ body = \"username\" }}\nregion = \"query.r\"\norder = \"path.id\"\n\
             [limits.a]\nkey = [{key}]\nrate = \"5/h\"\n[limits.ip]\nkey = [\"client_ip\"]\nrate = \"9/h\"\n\
             [limits.trial]\nkey = [\"user\"]\nrate = \"9/h\"\nmode = \"shadow\"\n\
             [[routes]]\nmatch = \"POST /orders/{{id}}\"\ncharge = [{charge}]\n\
             [[routes]]\nmatch = \"GET /\"\ncharge = [\"ip\", \"trial\"]\n"
        )
    };
    for key in ["\"account\"", "\"region\"", "\"order\"", "\"account\", \"order\"", "\"user ?? account\""] {
        for charge in ["\"a\"", "\"a\", \"trial\""] {
            let found = warnings(&text(key, charge));
            assert!(
                found.len() == 1 && found[0].starts_with("6:9: warning: limit `a` is counted by nothing but"),
                "{found:?}"
            );
        }
        assert!(warnings(&text(key, "\"a\", \"ip\"")).is_empty(), "{key}: the address holds its sender");
    }
    for key in ["\"user\"", "\"user\", \"order\"", "\"client_ip\", \"account\""] {
        assert!(warnings(&text(key, "\"a\"")).is_empty(), "{key}");
    }
    let unrouted = "version = 1\nidentity.q = \"query.q\"\n[limits.a]\nkey = [\"q\"]\nrate = \"5/h\"\n";
    assert_eq!(warnings(unrouted).len(), 1);
}

#[test]
fn a_prefix_that_is_not_a_clients_is_a_warning() {
    let text = |prefix: u8| format!("version = 1\nlimits = {{}}\nidentity.client_ip = {{ ipv6_prefix = {prefix} }}\n");
    for prefix in [32, 48, 56, 64] {
        assert!(warnings(&text(prefix)).is_empty(), "{prefix}");
    }
    for (prefix, says) in [(65, "over 64"), (128, "over 64"), (31, "under 32"), (1, "under 32")] {
        let found = warnings(&text(prefix));
        assert!(found.len() == 1 && found[0].starts_with("3:38: warning: ") && found[0].contains(says), "{found:?}");
    }
}

#[test]
fn a_plan_that_its_sender_picks_is_a_warning() {
    let text = |plan: &str, plans: &str| format!("version = 1\nlimits = {{}}\nidentity.plan = {plan}\n{plans}");
    let plans = "plans.names = [\"free\", \"pro\"]\n";
    for plan in ["\"header.x-plan\"", "\"query.plan\"", "\"path.plan\"", "{ body = \"plan\" }"] {
        let found = warnings(&text(plan, plans));
        assert!(found.len() == 1 && found[0].starts_with("3:17: warning: `plan` is the "), "{found:?}");
        assert!(warnings(&text(plan, "")).is_empty(), "without plans nothing follows from it");
    }
    for plan in ["\"claims.tier\"", "\"context.authorizer.plan\"", "\"api_key\""] {
        assert!(warnings(&text(plan, plans)).is_empty(), "{plan}");
    }
}

#[test]
fn a_file_that_speaks_of_a_proxy_and_trusts_none_is_a_warning() {
    let text = |trust: &str, header: &str, key: &str| {
        format!(
            "version = 1\n[identity]\ncountry = \"header.{header}\"\n{trust}\n[limits.a]\nkey = [\"{key}\"]\nrate = \"5/h\"\n"
        )
    };
    for header in ["CloudFront-Viewer-Country", "x-amz-cf-id", "cf-ipcountry", "X-Real-IP", "x-forwarded-for"] {
        for trust in ["", "client_ip = { trusted_hops = 0 }"] {
            let found = warnings(&text(trust, header, "user ?? client_ip"));
            assert!(found.len() == 1 && found[0].starts_with("3:11: warning: `country` is the header"), "{found:?}");
        }
        assert!(warnings(&text("", header, "user")).is_empty(), "no limit is counted by the address");
        for trust in ["client_ip = { trusted_hops = 1 }", "client_ip = { trusted_proxies = [\"10.0.0.0/8\"] }"] {
            assert!(warnings(&text(trust, header, "client_ip")).is_empty(), "{trust}");
        }
    }
    assert!(warnings(&text("", "x-tag", "client_ip")).is_empty());
}

#[test]
fn a_block_of_proxies_as_large_as_a_provider_is_a_warning() {
    let text = |block: &str| {
        format!("version = 1\nlimits = {{}}\nidentity.client_ip = {{ trusted_proxies = [\"{block}\"] }}\n")
    };
    for block in ["13.224.0.0/14", "10.0.0.0/8", "100.64.0.0/10", "2600:9000::/28", "fc00::/7", "192.0.2.7/32"] {
        assert!(warnings(&text(block)).is_empty(), "{block}");
    }
    for block in ["3.0.0.0/8", "2600::/16"] {
        let found = warnings(&text(block));
        assert!(found.len() == 1 && found[0].starts_with("3:43: warning: "), "{found:?}");
    }
}

/// CVE-2026-27695.
#[test]
fn a_key_that_outruns_an_item_is_a_warning() {
    let text =
        |rate: &str, route: &str| format!("version = 1\n[limits.a]\nkey = [\"user\"]\nrate = \"{rate}\"\n{route}");
    assert!(warnings(&text("1000/s", "")).is_empty());
    let found = warnings(&text("1001/s", ""));
    assert!(
        found.len() == 1 && found[0].starts_with("2:9: warning: limit `a` lets one key make more than 1000"),
        "{found:?}"
    );
    assert_eq!(warnings(&text("2/ms", "")).len(), 1);
    let dear = "[[routes]]\nmatch = \"*\"\ncharge = [{ limit = \"a\", cost = 2 }]\n";
    assert!(warnings(&text("2000/s", dear)).is_empty());
    assert_eq!(warnings(&text("2001/s", dear)).len(), 1);
}

#[test]
fn shards_take_as_many_times_more_and_are_advised_where_they_help() {
    let text =
        |rate: &str, more: &str| format!("version = 1\n[limits.a]\nkey = [\"user\"]\nrate = \"{rate}\"\n{more}\n");
    assert!(warnings(&text("4000/s", "shards = 4")).is_empty());
    let found = warnings(&text("4001/s", "shards = 4"));
    let says = "more than 4000 calls a second (4001/s), and each is a write to one of 4 shards";
    assert!(found.len() == 1 && found[0].contains(says), "{found:?}");
    let help =
        |text: &str| Policy::parse(text).expect("valid").warnings.iter().map(|w| w.help.clone()).collect::<Vec<_>>();
    let without = "lower the rate, count by a dimension with more values, or let processes take tokens ahead (`lease`)";
    assert_eq!(help(&text("4001/s", "")), [format!("write `shards = 5`, {without}")]);
    let divided = "write `shards = 5`, lower the rate, or count by a dimension with more values";
    assert_eq!(help(&text("4001/s", "shards = 4")), [divided]);
    // What shards would not mend, or the limit cannot have.
    for more in ["burst = 4", "penalty = { first = \"1min\" }", "atomic = true"] {
        assert_eq!(help(&text("4001/s", more)), [without], "{more}");
    }
    assert_eq!(help(&text("100001/s", "")), [without]);
    let dear = "burst = 10\n[[routes]]\nmatch = \"*\"\ncharge = [{ limit = \"a\", cost = 5 }]";
    assert_eq!(help(&text("10000/s", dear)), [format!("write `shards = 2`, {without}")]);
    assert_eq!(help(&text("10001/s", dear)), [without], "three of ten take a cost of 3 at most");
}

#[test]
fn a_lease_that_is_lost_for_long_is_a_warning() {
    let text = |more: &str| format!("version = 1\n[limits.a]\nkey = [\"user\"]\n{more}\nlease = 5\n");
    assert!(warnings(&text("rate = \"50/h\"")).is_empty());
    for slow in ["rate = \"50/h\"\nburst = 51", "rate = \"1000/day\"\nalgorithm = \"quota\""] {
        let found = warnings(&text(slow));
        assert!(found.len() == 1 && found[0].contains("limit `a` is leased, and remembers for"), "{found:?}");
    }
}

#[test]
fn everyone_is_one_key_and_outruns_its_item_as_any_other_does() {
    let text = |rate: &str| format!("version = 1\n[limits.a]\nkey = [\"user ?? everyone\"]\nrate = \"{rate}\"\n");
    assert!(warnings(&text("1000/s")).is_empty());
    let found = warnings(&text("1001/s"));
    assert!(found.len() == 1 && found[0].contains("`a` lets all callers together make more than 1000"), "{found:?}");
}

/// A token is signed, so nobody makes himself a fresh bucket of one.
#[test]
fn a_known_device_and_everyone_are_chosen_by_nobody() {
    let text = |key: &str| {
        format!(
            "version = 1\n[identity]\naccount = {{ body = \"username\" }}\ndevice = {{ cookie = \"d\", bound_to = \"account\" }}\n\
             [limits.a]\nkey = [{key}]\nrate = \"5/h\"\n[[routes]]\nmatch = \"POST /login\"\ncharge = [\"a\"]\n"
        )
    };
    for key in ["\"device ?? everyone\"", "\"everyone\"", "\"device\"", "\"device ?? client_ip\", \"account\""] {
        assert!(warnings(&text(key)).is_empty(), "{key}: {:?}", warnings(&text(key)));
    }
    for key in ["\"device ?? account\"", "\"account\""] {
        let found = warnings(&text(key));
        assert!(
            found.len() == 1 && found[0].contains("counted by nothing but the field username of the body"),
            "{found:?}"
        );
    }
}

#[test]
fn an_item_that_outgrows_a_write_unit_is_a_warning() {
    let with = |count: usize| {
        let limit = |i| format!("[limits.limit-number-{i}]\nkey = [\"user ?? client_ip\"]\nrate = \"5/h\"\n");
        let limits: String = (0..count).map(limit).collect();
        warnings(&format!("version = 1\n{limits}"))
    };
    assert!(with(4).is_empty());
    let found = with(8);
    assert_eq!(found.len(), 2, "one for each dimension that can name the item: {found:?}");
    assert!(found[0].contains("8 limits share the item of a key by `client_ip`"), "{found:?}");
}
