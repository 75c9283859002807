//! Layers that get in each other's way are warned of, from the figures alone.

use tollgate_policy::Policy;

/// What a policy is warned of.
fn warnings(text: &str) -> Vec<String> {
    let parsed = Policy::parse(text).unwrap_or_else(|findings| panic!("{text}\n{findings:?}"));
    parsed.warnings.iter().map(|warning| warning.message.clone()).collect()
}

/// A limit on a route, and a rule in front of it.
fn text(limit: &str, route: &str, edge: &str) -> String {
    format!(
        "version = 1\n[limits.a]\n{limit}\n[[routes]]\n{route}\n[edge]\nstage = 'block'\n{edge}\n\
         [[edge.rules]]\nname = 'rate-auth'\npaths = ['/api/auth']\nrate = '100/5min'\n"
    )
}

const LOGIN: &str = "match = 'POST /API/auth/login'\ncharge = ['a']";

#[test]
fn a_limit_by_address_that_a_rule_in_front_leaves_nothing_to_deny_is_a_warning() {
    let found = |limit: &str, route: &str, edge: &str| warnings(&text(limit, route, edge));
    let idle = "limit `a` never denies: rule `rate-auth` of [edge] stops an address at 100 requests in 300 s";
    // A bucket that takes a hundred at once and a hundred in five minutes; windows that take as many as can come in them.
    let never = [
        "key = ['client_ip']\nrate = '20/min'\nburst = 100",
        "key = ['client_ip', 'user']\nrate = '100/5min'\nburst = 100",
        "key = ['client_ip']\nrate = '100/min'\nalgorithm = 'fixed-window'",
        "key = ['client_ip']\nrate = '200/10min'\nalgorithm = 'sliding-window'",
        "key = ['client_ip']\nrate = '28800/day'\nalgorithm = 'quota'",
    ];
    for limit in never {
        assert_eq!(found(limit, LOGIN, ""), [idle], "{limit}");
    }
    let denies = [
        "key = ['client_ip']\nrate = '20/min'\nburst = 99",
        "key = ['client_ip']\nrate = '19/min'\nburst = 100",
        "key = ['client_ip']\nrate = '199/10min'\nalgorithm = 'sliding-window'",
        "key = ['client_ip']\nrate = '28799/day'\nalgorithm = 'quota'",
        // One user may come from many addresses.
        "key = ['user ?? client_ip']\nrate = '100/min'\nburst = 100",
    ];
    for limit in denies {
        assert!(found(limit, LOGIN, "").is_empty(), "{limit}");
    }
    let limit = never[0];
    // What costs two is denied after fifty; what is elsewhere, only counted, excepted or in another's hands is not stopped in front.
    let twice = "match = 'POST /api/auth/login'\ncharge = [{ limit = 'a', cost = 2 }]";
    let elsewhere = format!("{LOGIN}\n[[routes]]\nmatch = 'GET /api/authors'\ncharge = ['a']");
    let any = "match = '*'\ncharge = ['a']";
    for route in [twice, &elsewhere, any] {
        assert!(found(limit, route, "").is_empty(), "{route}");
    }
    let behind = |other: &str| text(limit, LOGIN, "").replace("stage = 'block'", other);
    for other in ["stage = 'count'", "stage = 'captcha'", "stage = 'block'\nforwarded = { header = 'x-real-ip' }"] {
        assert!(warnings(&behind(other)).is_empty(), "{other}");
    }
    let excepted = text(limit, LOGIN, "egress = { hq = ['203.0.113.0/24'] }") + "except = { egress = ['hq'] }\n";
    assert!(warnings(&excepted).is_empty());
}

#[test]
fn a_rule_that_stops_an_office_behind_one_address_is_a_warning_where_its_users_are_stated() {
    let found = |limit: &str, users: &str| warnings(&text(limit, LOGIN, users));
    let limit = "key = ['user']\nrate = '1/min'\nburst = 5";
    assert!(found(limit, "").is_empty(), "nobody says how many there are");
    // Five at once, and five more in five minutes.
    assert!(found(limit, "users_per_address = 10").is_empty());
    let says = "11 users behind one address may make 110 calls of `POST /API/auth/login` in 300 s, each within limit `a`, and rule \
                `rate-auth` stops them at 100";
    assert_eq!(found(limit, "users_per_address = 11"), [says]);
    // Together they have no more than the address, or everybody.
    for together in ["key = ['client_ip']\nrate = '1/min'\nburst = 5", "key = ['everyone']\nrate = '1/min'\nburst = 5"]
    {
        assert!(found(together, "users_per_address = 1000").is_empty(), "{together}");
    }
    let windowed = "key = ['user']\nrate = '3/min'\nalgorithm = 'sliding-log'";
    assert!(found(windowed, "users_per_address = 6").is_empty());
    assert_eq!(found(windowed, "users_per_address = 7").len(), 1);
}

#[test]
fn a_costly_call_that_passes_while_the_table_is_gone_is_a_warning() {
    let text = |cost: u32, more: &str| {
        let charge = format!("charge = [{{ limit = 'a', cost = {cost} }}]");
        format!(
            "version = 1\n[limits.a]\nkey = ['user']\nrate = '600/min'\nburst = 100\n[[routes]]\nmatch = 'GET /x'\n{charge}\n{more}\n"
        )
    };
    let says = "a call of `GET /x` takes 10 of the 100 that limit `a` has at once, and all calls pass while the table gives no answer";
    assert_eq!(warnings(&text(10, "on_store_failure = 'open'")), [says]);
    let of_limit = text(10, "").replace("burst = 100", "burst = 100\non_store_failure = 'open'");
    assert_eq!(warnings(&of_limit), [says], "the limit's holds where the route says nothing");
    assert!(warnings(&text(9, "on_store_failure = 'open'")).is_empty());
    for safe in ["on_store_failure = 'closed'", "on_store_failure = 'local'", ""] {
        assert!(warnings(&text(10, safe)).is_empty(), "{safe}");
    }
    let single = text(1, "on_store_failure = 'open'").replace("burst = 100", "burst = 5");
    assert!(warnings(&single).is_empty(), "a call that costs 1 is no costly one");
}
