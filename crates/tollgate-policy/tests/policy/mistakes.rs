//! One test input for each kind of mistake: what is said, and where the cursor goes.

use crate::{lines, refused};

/// Refuses `text` for one reason, at `place`, in words that contain `says`.
fn one(text: &str, place: &str, says: &str) {
    let found = lines(&refused(text));
    let found: Vec<_> = found.iter().filter(|line| line.contains(": error: ")).collect();
    let [line] = found[..] else { panic!("{found:#?}\n{text}") };
    assert!(line.starts_with(&format!("{place}: ")) && line.contains(says), "{line}\nwanted {place} {says}\n{text}");
}

/// A policy with one limit whose lines from the third on are given.
fn limit(lines: &str) -> String {
    format!("version = 1\n[limits.a]\n{lines}\n")
}

/// A policy with one limit, whose line 5 is given.
fn extra(line: &str) -> String {
    limit(&format!("key = [\"user\"]\nrate = \"50/h\"\n{line}"))
}

fn key_rate(rate: &str) -> String {
    limit(&format!("key = [\"user\"]\nrate = {rate}"))
}

/// A policy with two limits, `a` by user with bursts 50 and 20 (plan `small`), `b` by tenant; line 13 on is given.
fn routes(lines: &str) -> String {
    format!(
        "version = 1\n[plans]\nnames = [\"free\", \"small\"]\n[limits.a]\nkey = [\"user\"]\nrate = \"50/h\"\n\
         plans.small = {{ rate = \"20/h\" }}\n[limits.b]\nkey = [\"tenant\"]\nrate = \"50/h\"\n[identity]\n\
         item = \"path.id\"\n{lines}\n"
    )
}

fn identity(line: &str) -> String {
    format!("version = 1\n[identity]\n{line}\n")
}

#[test]
fn top_level() {
    one("", "1:1", "no `version`");
    one("version = 2", "1:11", "version 2 is not supported by this version");
    one("version = \"1\"", "1:11", "version must be a whole number, not a string");
    one("version = 1\nrevision = 0", "2:12", "revision must be a whole number at least 1, not 0");
    one("version = 1\nrevision = -3", "2:12", "not -3");
    one("version = 1\ninstances = 0", "2:13", "instances must be a whole number from 1 to 1000000, not 0");
    one("version = 1\ninstances = 1_000_001", "2:13", "from 1 to 1000000");
    one("version = 1\ninstances = \"20\"", "2:13", "instances must be a whole number");
    one("version = 1\nlimit = {}", "2:1", "unknown key `limit`");
    one("version = 1\nlimits = 3", "2:10", "[limits] must be a table, not an integer");
    one("version = 1\n[routes]", "2:1", "routes must be an array, not a table");
    one("version = 1\n[exempt]", "2:1", "exempt must be an array, not a table");
}

#[test]
fn plans() {
    one("version = 1\n[plans]\ndefault = \"a\"\nnames = []", "4:9", "no plan");
    one("version = 1\n[plans]", "2:1", "[plans] has no `names`");
    one("version = 1\n[plans]\nnames = [\"a\", \"a\"]", "3:15", "given twice");
    one("version = 1\n[plans]\nnames = [\"A b\"]", "3:10", "cannot be the name of a plan");
    one("version = 1\n[plans]\nnames = [\"free\"]\ndefault = \"fre\"", "4:11", "not one of the names");
    one("version = 1\n[plans]\nname = [\"free\"]\nnames = [\"free\"]", "3:1", "unknown key `name`");
}

#[test]
fn identities() {
    one(&identity("user = \"claim.sub\""), "3:8", "not a source");
    one(&identity("user = \"claims.\""), "3:8", "no name after `claims.`");
    one(&identity("user = \"header.a b\""), "3:8", "not a header name");
    one(&identity("user = 3"), "3:8", "must be a string");
    one(&identity("User = \"claims.sub\""), "3:1", "cannot be the name of a dimension");
    one(&identity("user = { bdy = \"x\", body = \"y\" }"), "3:10", "unknown key `bdy`");
    one(&identity("user = { body = \"\" }"), "3:17", "no field name");
    one(&identity("user = { fold = \"email\" }"), "3:8", "neither `body` nor `from`");
    one(&identity("user = { body = \"x\", from = \"claims.sub\" }"), "3:29", "both `body` and `from`");
    one(&identity("user = { from = \"claim.sub\" }"), "3:17", "not a source");
    one(&identity("user = { body = \"x\", fold = \"emial\" }"), "3:29", "fold cannot be");
    one(&identity("user = { body = \"x\", fold = \"phone\", region = \"in\" }"), "3:47", "no region");
    one(&identity("user = { body = \"x\", fold = \"phone\", region = \"XX\" }"), "3:47", "no region");
    one(&identity("user = { body = \"x\", fold = \"email\", region = \"IN\" }"), "3:47", "`region` is for numbers");
    one(&identity("user = { body = \"x\", region = \"IN\" }"), "3:31", "`region` is for numbers");
    one(&identity("user = { body = \"x\", personal = \"yes\" }"), "3:33", "personal must be true or false");
    one(&identity("user = { body = \"x\", fold = \"email\", personal = false }"), "3:49", "says that it has none");
    one(&identity("plan = { from = \"claims.p\", fold = \"lower\" }"), "3:8", "`plan` is compared");
    one(&identity("user = { from = \"claims.sub\", log = \"plain\" }"), "3:37", "`log` is for `tenant` and `api_key`");
    one(&identity("tenant = { from = \"claims.t\", log = \"yes\" }"), "3:37", "log cannot be");
    one(&identity("tenant = { from = \"header.t\", log = \"plain\" }"), "3:37", "write themselves");
    one(&identity("tenant = { from = \"claims.t\", personal = true, log = \"plain\" }"), "3:54", "personal");
    one(&identity("client_ip = \"header.x\""), "3:13", "`client_ip` must be a table");
    one(&identity("client_ip = { ipv6_prefix = 0 }"), "3:29", "from 1 to 128, not 0");
    one(&identity("client_ip = { trusted_hops = 17 }"), "3:30", "from 0 to 16, not 17");
    one(&identity("client_ip = { trusted_hops = 0, trusted_proxies = [\"10.0.0.0/8\"] }"), "3:51", "both");
    one(&identity("client_ip = { trusted_proxies = [\"10.0.0.1/8\"] }"), "3:34", "not a block of addresses");
    one(&identity("client_ip = { trusted_proxies = [] }"), "3:33", "empty");
    one(&identity("client_ip = { trusted_hops = 1, header = \"a b\" }"), "3:42", "not a header name");
    one(&identity("client_ip = { header = \"Forwarded\" }"), "3:24", "not looked at");
    one(&identity("client_ip = { trusted_hops = 0, header = \"Forwarded\" }"), "3:42", "not looked at");
    for everybody in ["0.0.0.0/0", "::/0", "0.0.0.0/1", "128.0.0.0/1", "2000::/3", "8.0.0.0/7"] {
        let block = identity(&format!("client_ip = {{ trusted_proxies = [\"10.0.0.0/8\", \"{everybody}\"] }}"));
        one(&block, "3:48", &format!("{everybody} is not the block of a proxy"));
    }
}

#[test]
fn devices() {
    let device = |rest: &str| identity(&format!("d = {{ cookie = \"d\", {rest} }}"));
    one(&identity("d = { bound_to = \"user\" }"), "3:5", "has no `cookie`");
    one(&identity("d = { cookie = \"d\" }"), "3:5", "has no `bound_to`");
    one(&identity("d = { cookie = \"a;b\", bound_to = \"user\" }"), "3:16", "not the name of a cookie");
    one(&identity("d = { cookie = 7, bound_to = \"user\" }"), "3:16", "cookie must be a string");
    one(&device("bound_to = \"usr\""), "3:32", "bound to `usr`, which is not declared");
    one(&device("bound_to = \"d\""), "3:32", "nobody's name");
    one(&device("bound_to = \"everyone\""), "3:32", "nobody's name");
    one(&device("bound_to = \"user\", max_age = 90"), "3:50", "max_age must be a string");
    for age in ["59min", "0h", "401day", "2year"] {
        one(&device(&format!("bound_to = \"user\", max_age = \"{age}\"")), "3:50", "from 1h to 400day");
    }
    one(&device("bound_to = \"user\", max_age = \"90\""), "3:50", "duration");
    one(&device("bound_to = \"user\", fold = \"email\""), "3:40", "unknown key `fold`");
    let twins = "d = { cookie = \"c\", bound_to = \"user\" }\ne = { cookie = \"c\", bound_to = \"tenant\" }";
    one(&identity(twins), "4:32", "`e` has the cookie of `d`");
    one(&identity("plan = { cookie = \"d\", bound_to = \"user\" }"), "3:8", "`plan` is compared");
    one(&identity("client_ip = { cookie = \"d\" }"), "3:15", "unknown key `cookie`");
    one(&identity("everyone = \"claims.sub\""), "3:1", "`everyone` is built in");
    let bound_to_a_mistake = "account = \"claim.x\"\nd = { cookie = \"d\", bound_to = \"account\" }";
    one(&identity(bound_to_a_mistake), "3:11", "not a source");
    let without_the_parameter = "version = 1\n[identity]\norder = \"path.id\"\nd = { cookie = \"d\", bound_to = \"order\" }\n\
        [limits.a]\nkey = [\"d\"]\nrate = \"5/h\"\n[[routes]]\nmatch = \"GET /x\"\ncharge = [\"a\"]\n";
    one(without_the_parameter, "10:11", "the path has no {id}");
}

#[test]
fn keys() {
    one(&limit("rate = \"50/h\""), "2:1", "[limits.a] has no `key`");
    one(&limit("rate = \"50/h\"\nkey = \"user\""), "4:7", "key must be an array, not a string");
    one(&limit("rate = \"50/h\"\nkey = []"), "4:7", "1 to 4 entries, not 0");
    one(&limit("rate = \"50/h\"\nkey = [\"user\", \"user ?? tenant\"]"), "4:16", "`user` occurs twice");
    one(&limit("rate = \"50/h\"\nkey = [\"user ?? \"]"), "4:8", "lacks a dimension");
    one(&limit("rate = \"50/h\"\nkey = [\"tennant\"]"), "4:8", "`tennant` is not declared");
    one(&extra("").replace("limits.a", "limits.\"a b\""), "2:9", "limit name \"a b\" must be 1 to 64");
}

/// redis-cell#41: a limit of 0 crashed. rate-limiter-flexible's Dynamo store: a duration of 0 or less let everything pass.
#[test]
fn figures() {
    one(&limit("key = [\"user\"]"), "2:1", "[limits.a] has no `rate`");
    let rate = |rate: &str| limit(&format!("key = [\"user\"]\nrate = {rate}"));
    one(&rate("50"), "4:8", "rate must be a string, not an integer");
    one(&rate("\"0/h\""), "4:8", "rate must be a whole number from 1 to 1,000,000,000,000, not 0");
    one(&key_rate("\"5/0s\""), "4:8", "period must be from 1 ns to 200 years, not 0");
    one(&key_rate("\"5/-1s\""), "4:8", "negative");
    one(&rate("\"-5/s\""), "4:8", "negative");
    one(&rate("\"1.5/s\""), "4:8", "digits only");
    one(&rate("\"1_000/s\""), "4:8", "digits only");
    one(&key_rate("\"5/201year\""), "4:8", "period must be from 1 ns to 200 years");
    one(&key_rate("\"5/9999999year\""), "4:8", "period must be from 1 ns to 200 years");
    one(&rate("\"1000/month\""), "4:8", "needs `algorithm = \"quota\"`");
    one(&rate("\"2000000000000/s\""), "4:8", "not 2000000000000");
    one(&extra("burst = 0"), "5:9", "burst must be a whole number from 1");
    one(&extra("burst = 1.5"), "5:9", "burst must be a whole number, not a float");
    one(&extra("burst = \"50\""), "5:9", "burst must be a whole number, not a string");
    one(&limit("key = [\"user\"]\nrate = \"1/year\"\nburst = 20000"), "5:9", "more than 10,000 years");
}

#[test]
fn a_bad_burst_does_not_hide_a_bad_rate() {
    let found = lines(&refused(&limit("key = [\"user\"]\nrate = \"0/h\"\nburst = -5")));
    assert!(found.len() == 2 && found[0].starts_with("4:8: ") && found[1].starts_with("5:9: "), "{found:#?}");
}

#[test]
fn figures_of_plans() {
    let plan = |figures: &str| format!("{}[plans]\nnames = [\"free\", \"pro\"]\n", extra(figures));
    one(&plan("plans.pro = { rate = \"1/decade\" }"), "5:22", "unknown unit");
    one(&plan("plans.pro = { burst = 5 }"), "5:13", "plan `pro` has no `rate`");
    one(&plan("plans.pro = { rate = \"1/h\", burst = 0 }"), "5:37", "burst must be");
    one(&plan("plans.prp = { rate = \"1/h\" }"), "5:7", "plan `prp` is not declared");
    one(&plan("plans.pro = \"1/h\""), "5:13", "must be a table");
    one(&extra("plans.pro = { rate = \"1/h\" }"), "5:7", "plan `pro` is not declared");
}

#[test]
fn what_an_authentication_has_to_be() {
    let step_up = |value: &str| routes(&format!("[[routes]]\nmatch = \"*\"\ncharge = [\"a\"]\nstep_up = {value}"));
    one(&step_up("\"5min\""), "16:11", "must be a table");
    one(&step_up("{ acr = [\"mfa\"] }"), "16:11", "step_up has no `max_age`");
    one(&step_up("{ max_age = \"25h\" }"), "16:23", "at most 86400 s");
    one(&step_up("{ max_age = \"500ms\" }"), "16:23", "at least 1 s");
    one(&step_up("{ max_age = \"5min\", acr = [] }"), "16:37", "1 to 16 values");
    one(&step_up("{ max_age = \"5min\", acr = [\"a b\"] }"), "16:38", "cannot be a value");
    one(&step_up("{ max_age = \"5min\", acr = [\"a\\\"b\"] }"), "16:38", "cannot be a value");
    one(&step_up("{ max_age = \"5min\", amr = [\"otp\", \"otp\"] }"), "16:45", "is given twice");
    one(&step_up("{ max_age = \"5min\", bind = [\"\"] }"), "16:39", "cannot be a value");
    one(&step_up("{ max_age = \"5min\", maxage = 1 }"), "16:31", "unknown key `maxage`");
}

#[test]
fn nobody_chooses_whose_authentication_counts() {
    let route = "[limits.a]\nkey = [\"user\"]\nrate = \"1/h\"\n[[routes]]\nmatch = \"*\"\ncharge = [\"a\"]\nstep_up = { max_age = \"5min\" }";
    for (dimension, source) in [("user", "header.x-user"), ("tenant", "query.tenant"), ("session", "header.x-session")]
    {
        let text = format!("version = 1\n[identity]\n{dimension} = \"{source}\"\n{route}");
        one(&text, "10:11", &format!("`step_up` needs `{dimension}` from whoever vouches"));
    }
}

#[test]
fn the_figures_of_logs() {
    let log = |rate: &str, rest: &str| {
        format!("version = 1\n[limits.a]\nkey = [\"user\"]\nrate = \"{rate}\"\nalgorithm = \"sliding-log\"\n{rest}")
    };
    one(&log("33/h", ""), "4:8", "from 1 to 32 for a log");
    one(&log("5/1ms", ""), "4:8", "from 1 s to 200 years");
    one(&log("5/15min", "burst = 5"), "6:9", "has no burst");
    one(&log("5/15min", "debt = 5"), "6:8", "`algorithm = \"sliding-log\"` has no debt");
    let plan = "plans.pro = { rate = \"5/h\" }\n[plans]\nnames = [\"pro\"]";
    one(&log("5/15min", plan), "6:13", "is counted over another period");
}

#[test]
fn what_calls_count_as() {
    one(&extra("count = \"successes\""), "5:9", "count");
    one(&extra("on_success = \"keep\""), "5:14", "is for limits that count failures");
    one(&extra("count = \"failures\"\non_success = \"clear\""), "6:14", "only a log knows");
    one(&extra("refund_on = \"4xx\""), "5:13", "refund_on");
    one(&extra("algorithm = \"pacer\"\nburst = 1\ncount = \"failures\""), "7:9", "it counts");
    one(&extra("count = \"failures\"\npenalty = { first = \"1min\" }"), "6:11", "may yet succeed");
    one(&extra("first = 1"), "5:9", "first must be");
    one(&extra("debt = -1"), "5:8", "debt must be a whole number from 0");
    let charge = |rest: &str| routes(&format!("[[routes]]\nmatch = \"*\"\ncharge = [{{ limit = \"a\", {rest} }}]"));
    one(&charge("settle_within = \"2day\""), "15:42", "at most 86400 s");
    one(&charge("settle_within = \"0s\""), "15:42", "at least 1 s");
}

#[test]
fn the_figures_of_pacers() {
    let pacer = |rest: &str| extra(&format!("algorithm = \"pacer\"\n{rest}"));
    one(&pacer("burst = -1"), "6:9", "burst must be a whole number from 0");
    one(&pacer("burst = 1000000000000"), "6:9", "from 0 to 999999999999");
    one(&pacer("burst = 5\ndelay = 6"), "7:9", "delay 6 is more than the burst, 5");
    one(&pacer("delay = 1"), "6:9", "delay 1 is more than the burst, 0");
    one(&pacer("burst = 5\ndelay = \"all\""), "7:9", "delay must be a whole number, not a string");
    one(&pacer("max_wait = 2"), "6:12", "max_wait must be a string, not an integer");
    one(&pacer("max_wait = \"2\""), "6:12", "has no unit");
    one(&pacer("max_wait = \"-2s\""), "6:12", "negative");
    one(&pacer("zone = \"UTC\""), "6:8", "has no calendar, and no zone");
    for algorithm in ["token-bucket", "fixed-window", "sliding-window"] {
        let with = |line: &str| extra(&format!("algorithm = \"{algorithm}\"\n{line}"));
        one(&with("delay = 1"), "6:9", "keeps nobody waiting, and has no delay");
        one(&with("max_wait = \"2s\""), "6:12", "keeps nobody waiting, and has no max_wait");
    }
}

#[test]
fn penalties() {
    let with = |fields: &str| extra(&format!("penalty = {{ {fields} }}"));
    one(&with("factor = 2"), "5:11", "penalty has no `first`");
    one(&extra("penalty = \"1min\""), "5:11", "penalty must be a table, not a string");
    one(&with("first = \"1min\", facter = 2"), "5:29", "unknown key `facter` in penalty");
    one(&with("first = 60"), "5:21", "first must be a string, not an integer");
    one(&with("first = \"999ms\""), "5:21", "first must be at least 1 s, not \"999ms\"");
    one(&with("first = \"31day\""), "5:21", "first must be at most 2592000 s");
    one(&with("first = \"2h\", most = \"1h\""), "5:34", "most is shorter than first");
    one(&with("first = \"1min\", most = \"31day\""), "5:36", "most must be at most 2592000 s");
    one(&with("first = \"1min\", factor = 0"), "5:38", "factor must be a whole number from 1 to 10, not 0");
    one(&with("first = \"1min\", factor = 11"), "5:38", "factor must be a whole number from 1 to 10, not 11");
    one(&with("first = \"1min\", forget = \"366day\""), "5:38", "forget must be at most 31536000 s");
    one(&with("first = \"1min\", forget = \"1\""), "5:38", "has no unit");
    one(&with("first = \"1min\", extend = 1"), "5:38", "extend must be true or false, not an integer");
    one(&extra("retry_jitter = 10"), "5:16", "retry_jitter must be a string, not an integer");
    one(&extra("retry_jitter = \"2h\""), "5:16", "retry_jitter must be at most 3600 s");
}

#[test]
fn second_factors() {
    one("version = 1\n[mfa]", "2:1", "[mfa] has no `issuer`");
    one("version = 1\n[mfa]\nissuer = ' a'", "3:10", "issuer must be 1 to 64 bytes without colon, not \" a\"");
    let personal = "version = 1\n[mfa]\nissuer = 'a'\n[identity]\nuser = { from = 'claims.email', personal = true }";
    one(personal, "2:1", "[mfa] needs a `user` that is no personal value");
    one("version = 1\n[mfa]\nissuer = 'a'\nmax_age = '2day'", "4:11", "max_age must be at most 86400 s, not \"2day\"");
    let mfa = |rest: &str| format!("version = 1\n[mfa]\nissuer = 'a'\n{rest}");
    one(&mfa("cooldown = '1h'"), "4:12", "cooldown must be");
    one(&mfa("cooldown = '73h'"), "4:12", "cooldown must be");
    for url in
        ["http://x.org/{token}", "https://x.org/", "https://x.org/{token}{token}", "https://", "https://x.org/ {token}"]
    {
        one(&mfa(&format!("cancel_url = '{url}'")), "4:14", "cancel_url must be a page at https://");
    }
    one(&mfa("[mfa.recovery]\nwait = '23h'"), "5:8", "wait must be at least 86400 s, not \"23h\"");
    one(&mfa("[mfa.recovery]\nwait = '73h'"), "5:8", "wait must be at most 259200 s, not \"73h\"");
    one(&mfa("[mfa.recovery]\nwait = 24"), "5:8", "wait must be a string");
    one(&mfa("[mfa.recovery]\nadmins = 2"), "5:1", "unknown key `admins` in [mfa.recovery]");
    one(&mfa("enrol_acr = 'mfa'"), "4:13", "`enrol_acr` is the same as `acr`");
    one(&mfa("acr = 'mfa-enrol'"), "4:7", "`enrol_acr` is the same as `acr`");
    one(&mfa("audit_retention = '29day'"), "4:19", "audit_retention must be at least 2592000 s, not \"29day\"");
    one(&mfa("audit_retention = '3651day'"), "4:19", "audit_retention must be at most 315360000 s, not \"3651day\"");
    one(&mfa("audit_retention = 400"), "4:19", "audit_retention must be a string");
    one(&mfa("first_factor = []"), "4:16", "`first_factor` must have 1 to 16 values, not 0");
    let tenants = |rest: &str| mfa(&format!("[mfa.tenants]\n{rest}"));
    one(&tenants("allow = []"), "5:1", "unknown key `allow` in [mfa.tenants]");
    one(&tenants("allowed = ['topt']"), "5:12", "a kind cannot be \"topt\"");
    one(&tenants("allowed = ['totp', 'totp']"), "5:20", "kind `totp` is given twice");
    one(&tenants("allowed = ['sms']"), "5:11", "`allowed` has neither totp nor passkey");
    one(&tenants("required = ['sms']"), "5:12", "`required` has sms, which nobody enrols");
    one(&tenants("allowed = ['totp']\nrequired = ['passkey']"), "6:12", "`required` has passkey, which is not allowed");
    one(&tenants("allowed = ['totp']\nminimum = 2"), "6:11", "`minimum` is 2, and only 1 kinds");
    one(&tenants("minimum = 3"), "5:11", "minimum must be a whole number from 0 to 2, not 3");
    one(&tenants("grace = '1h'"), "5:9", "grace must be at least 86400 s, not \"1h\"");
    one(&tenants("admin = { claim = 'role' }"), "5:9", "admin has no `value`");
    one(&tenants("admin = { claim = 'role', value = 'a, b' }"), "5:35", "value \"a, b\" cannot be told from several");
}

#[test]
fn passkeys() {
    let passkeys = |lines: &str| format!("version = 1\n[mfa]\nissuer = 'a'\n[mfa.passkeys]\n{lines}\n");
    let rp_id = |id: &str| passkeys(&format!("origins = ['https://example.com']\nrp_id = {id}"));
    let origin =
        |origin: &str| passkeys(&format!("rp_id = 'example.com'\norigins = ['https://example.com', {origin}]"));
    one(&passkeys("origins = ['https://a.x']"), "4:1", "[mfa.passkeys] has no `rp_id`");
    one(&passkeys("rp_id = 'a.x'"), "4:1", "[mfa.passkeys] has no `origins`");
    one(&passkeys("rp_id = 'a.x'\norigins = []"), "6:11", "origins must be 1 to 10, not 0");
    one(&passkeys("rp_id = 'a.x'\norigins = ['https://a.x']\nrpid = 1"), "7:1", "unknown key `rpid` in [mfa.passkeys]");
    one(&rp_id("'127.0.0.1'"), "6:9", "rp_id \"127.0.0.1\" is an address, which browsers refuse");
    one(&rp_id("'Example.com'"), "6:9", "rp_id \"Example.com\" is not how browsers write it");
    one(&rp_id("'https://example.com'"), "6:9", "rp_id \"https://example.com\" is no domain");
    one(&rp_id("'example.com:443'"), "6:9", "is no domain");
    one(&origin("'http://example.com'"), "6:35", "is no secure context");
    one(&origin("'https://127.0.0.1'"), "6:35", "is of an address");
    one(&origin("'https://badexample.com'"), "6:35", "is not of \"example.com\" or below it");
    one(&origin("'https://example.com/'"), "6:35", "is not how browsers write it");
    one(&origin("'https://example.com:443'"), "6:35", "is not how browsers write it");
    one(&origin("'https://a@example.com'"), "6:35", "is not how browsers write it");
    one(&origin("'example.com'"), "6:35", "is no origin of a page");
    one(&origin("'data:text/html,x'"), "6:35", "is no origin of a page");
    let rest = |line: &str| passkeys(&format!("rp_id = 'localhost'\norigins = ['http://localhost:8787']\n{line}"));
    one(&rest("user_verification = 'require'"), "7:21", "user_verification cannot be \"require\"");
    one(&rest("timeout = '29s'"), "7:11", "timeout must be at least 30 s, not \"29s\"");
    one(&rest("timeout = '11min'"), "7:11", "timeout must be at most 600 s, not \"11min\"");
}

#[test]
fn one_time_codes() {
    let otp = |lines: &str| format!("version = 1\n[otp]\npurposes = [\"login\"]\n{lines}\n");
    one("version = 1\n[otp]", "2:1", "[otp] has no `purposes`");
    one("version = 1\notp = true", "2:7", "[otp] must be a table, not a boolean");
    one("version = 1\n[otp]\npurposes = []", "3:12", "`purposes` has no purpose");
    one("version = 1\n[otp]\npurposes = [\"log in\"]", "3:13", "\"log in\" cannot be the name of a purpose");
    one("version = 1\n[otp]\npurposes = [\"a\", \"a\"]", "3:18", "purpose `a` is given twice");
    one(&otp("countries = [\"RO\", \"XX\"]"), "4:20", "\"XX\" is no region with a numbering plan");
    one(&otp("region = \"+40\""), "4:10", "\"+40\" is no region with a numbering plan");
    one(&otp("digit = 6"), "4:1", "unknown key `digit`");
    one(&otp("acr = \"mfa\""), "4:7", "`acr` is proved by no code without `factors`");
    one(&otp("factors = [\"login\"]"), "4:11", "`factors` prove nothing without `acr`");
    one(&otp("sign_in = [\"log-in\"]"), "4:12", "a purpose cannot be \"log-in\"");
    one(
        &otp("sign_in = [\"login\"]\nacr = \"mfa\"\nfactors = [\"login\"]"),
        "4:11",
        "is one to sign in by and a second factor",
    );
    // Fewer can be guessed within what an account may try, and more nobody types.
    one(&otp("channels = []"), "4:12", "`channels` has no channel");
    one(&otp("channels = [\"sms\", \"sms\"]"), "4:20", "channel `sms` is given twice");
    one(&otp("channels = [\"mail\"]"), "4:13", "a channel cannot be \"mail\"");
    one(&otp("message = \"Your code.\""), "4:11", "the message has no code");
    one(&otp("message = { en = \"{code}\", ro = \"codul\" }"), "4:11", "the message in \"ro\" has no code");
    one(&otp("message = \"{code} {retry_after}\""), "4:11", "unknown placeholder {retry_after}");
    one(&otp("subject = \"{code}\""), "4:11", "unknown placeholder {code}");
    one(&otp("domain = \"https://example.com\""), "4:10", "is no host in small letters");
    one(&otp("domain = \"Example.com\""), "4:10", "is no host in small letters");
    one(&otp("captcha = \"yes\""), "4:11", "captcha must be true or false, not a string");
    one(&otp("digits = 5"), "4:10", "digits must be a whole number from 6 to 10, not 5");
    one(&otp("digits = 11"), "4:10", "digits must be a whole number from 6 to 10, not 11");
    one(&otp("ttl = \"59s\""), "4:7", "ttl must be at least 60 s, not \"59s\"");
    one(&otp("ttl = \"11min\""), "4:7", "ttl must be at most 600 s, not \"11min\"");
    one(&otp("attempts = 0"), "4:12", "attempts must be a whole number from 1 to 10, not 0");
    one(&otp("budget = \"101/h\""), "4:10", "budget must be 1 to 100 guesses in 1min to 30day, not \"101/h\"");
    one(&otp("budget = \"1/s\""), "4:10", "budget must be 1 to 100 guesses in 1min to 30day, not \"1/s\"");
    one(&otp("budget = \"many\""), "4:10", "\"many\"");
    one(&otp("cooldown = { most = \"1h\" }"), "4:12", "cooldown has no `first`");
    one(&otp("cooldown = { first = \"1min\", extend = true }"), "4:30", "unknown key `extend` in cooldown");
    let pumping = |prices: &str, spend: &str, reduced: &str| {
        let limit = |name: &str, rate: &str| format!("[limits.{name}]\nkey = [\"user\"]\nrate = \"{rate}\"\n");
        let limits = limit("spend", "5/h") + &limit("daily", "5/h") + &limit("few", "1/h");
        otp(&format!(
            "countries = [\"RO\"]\npumping = {{ prices = {prices}, spend = {spend}, reduced = {reduced} }}\n{limits}"
        ))
    };
    one(&pumping("{ VN = 5 }", "[\"spend\"]", "\"few\""), "5:22", "no price for RO, where codes are sent to");
    one(&pumping("{ RO = 0 }", "[\"spend\"]", "\"few\""), "5:29", "a price must be a whole number from 1");
    one(&pumping("{ RO = 5 }", "[]", "\"few\""), "5:42", "`spend` has no limit");
    one(&pumping("{ RO = 5 }", "[\"spent\"]", "\"few\""), "5:43", "there is no limit `spent`");
    one(&pumping("{ RO = 5 }", "[\"spend\"]", "\"fewer\""), "5:63", "there is no limit `fewer`");
    one(&pumping("{ RO = 5 }", "[\"spend\", \"spend\"]", "\"few\""), "5:52", "limit `spend` is given twice");
    one(&pumping("{ RO = 5 }", "[\"spend\", \"daily\"]", "\"daily\""), "5:72", "limit `daily` is one of `spend`");
    one(&pumping("{ RO = 6 }", "[\"spend\"]", "\"few\""), "5:22", "cost 6 never fits limit `spend`, which takes 5");
    let elsewhere = pumping("{ RO = 5, VN = 6 }", "[\"spend\", \"daily\"]", "\"few\"");
    assert!(tollgate_policy::Policy::parse(&elsewhere).is_ok(), "no code is sent to VN");
    one(&otp("countries = [\"RO\", \"VN\", \"RO\"]"), "4:26", "country RO is given twice");
}

#[test]
fn what_a_leased_limit_cannot_have() {
    one(&extra("lease = 0"), "5:9", "lease must be a whole number from 1 to");
    one(&extra("lease = 5\npenalty = { first = \"1min\" }"), "6:11", "a leased limit cannot lock");
    one(&extra("lease = 5\ndebt = 5"), "6:8", "a leased limit has no debt");
    one(&extra("lease = 5\nrefund_on = \"5xx\""), "6:13", "a leased limit gives nothing back by an answer");
    one(&extra("lease = 5\ncount = \"failures\""), "6:9", "a leased limit counts all calls");
    one(&extra("lease = 5\natomic = true"), "6:10", "a leased limit is in no transaction");
    one(&extra("lease = 5\nown_item = false"), "6:12", "a leased limit has an item of its own");
    one(&extra("lease = 5\ncoalesce = false"), "6:12", "the calls of a leased limit line up");
    one(&extra("lease = 5\nmode = \"shadow\""), "6:8", "a limit in shadow mode is not leased");
    one(&extra("lease = 5\nalgorithm = \"pacer\""), "5:9", "a pacer is not leased");
    one(&key_rate("\"5/h\"\nlease = 5\nalgorithm = \"sliding-log\""), "5:9", "a log is not leased");
    let charge = "[[routes]]\nmatch = \"*\"\ncharge = [{ limit = \"a\", settle_within = \"1min\" }]";
    one(&extra(&format!("lease = 5\n{charge}")), "8:42", "a leased limit is charged what a call costs from the start");
    let plans = |rate| format!("plans.a = {{ rate = \"{rate}\", burst = 100 }}\nlease = 5\n[plans]\nnames = [\"a\"]");
    let text = format!("version = 1\n[limits.a]\nkey = [\"user\"]\nrate = \"1000/s\"\n{}", plans("9/s"));
    one(&text, "2:9", "limit `a` is leased, and refills in 12 s on plan `a`");
    assert!(tollgate_policy::Policy::parse(&text.replace("9/s", "10/s")).is_ok());
    let together = "lease = 5\n[[routes]]\nmatch = \"*\"\natomic = true\ncharge = [\"a\"]";
    one(&extra(together), "9:10", "limit `a` is leased, and is in no transaction with the others of this route");
}

#[test]
fn the_figures_of_windows() {
    for algorithm in ["fixed-window", "sliding-window", "quota"] {
        let with_burst = format!("algorithm = \"{algorithm}\"\nburst = 5");
        one(&extra(&with_burst), "6:9", &format!("a limit with `algorithm = \"{algorithm}\"` has no burst"));
    }
    one(&extra("algorithm = \"quota\""), "4:8", "a quota is per day or month, not \"50/h\"");
    one(&extra("zone = \"UTC\""), "5:8", "has no calendar, and no zone");
    one(
        &extra("algorithm = \"quota\"\nzone = \"Europe/Bucarest\""),
        "6:8",
        "time zone \"Europe/Bucarest\" is not known",
    );
    one(&key_rate("\"5/2month\"\nalgorithm = \"quota\""), "4:8", "a quota is per one day or one month");
    one(&key_rate("\"5/ms\"\nalgorithm = \"fixed-window\""), "4:8", "period must be from 1 s");
    one(
        &key_rate("\"5000000000/h\"\nalgorithm = \"sliding-window\""),
        "4:8",
        "rate must be a whole number from 1 to 999,999,999",
    );
}

/// What was counted in a day would be forgotten with the hour that it was moved to, and the day counted anew.
#[test]
fn plans_of_windows_are_counted_over_one_period() {
    for (algorithm, rate) in [("fixed-window", "1000/day"), ("sliding-window", "1000/day"), ("quota", "1000/day")] {
        let own = if algorithm == "quota" { "100/month" } else { "100/h" };
        let text = |plan: &str| {
            format!(
                "version = 1\n[plans]\nnames = [\"pro\"]\n[limits.a]\nkey = [\"user\"]\nalgorithm = \"{algorithm}\"\n\
                 rate = \"{own}\"\nplans.pro = {{ rate = \"{plan}\" }}"
            )
        };
        one(&text(rate), "8:13", "plan `pro` is counted over another period than its limit");
        assert!(tollgate_policy::Policy::parse(&text(&own.replace("100", "500"))).is_ok(), "{algorithm}");
    }
}

#[test]
fn the_other_keys_of_a_limit() {
    one(&extra("algorithm = \"token_bucket\""), "5:13", "algorithm cannot be \"token_bucket\"");
    one(&extra("mode = \"enforced\""), "5:8", "mode cannot be");
    one(&extra("own_item = \"no\""), "5:12", "own_item must be true or false");
    one(&extra("atomic = 1"), "5:10", "atomic must be true or false");
    one(&extra("coalesce = \"off\""), "5:12", "coalesce must be true or false");
    one(&extra("deny_cache = 0"), "5:14", "deny_cache must be true or false");
    one(
        &routes("[[routes]]\nmatch = \"*\"\ncharge = [\"a\"]\natomic = \"yes\""),
        "16:10",
        "atomic must be true or false",
    );
    one(&extra("on_change = \"keeps\""), "5:13", "on_change cannot be");
    one(&extra("on_store_failure = \"opened\""), "5:20", "on_store_failure cannot be");
    one(&extra("upgrade_url = \"billing\""), "5:15", "neither a path nor");
    one(&extra("message = \"\""), "5:11", "empty");
    one(&extra("message = \"in {retry}\""), "5:11", "unknown placeholder {retry}");
    one(&extra("message = { en = \"in {\" }"), "5:18", "brace without its partner");
    one(&extra("message = { \"e n\" = \"x\" }"), "5:13", "not a language tag");
    one(&extra("message = {}"), "5:11", "no language");
    one(&extra("message = 5"), "5:11", "must be a table");
}

/// rate-limiter-flexible, zae-limiter: costs of -5, NaN and 0.5.
#[test]
fn charges() {
    let charge = |charge: &str| routes(&format!("[[routes]]\nmatch = \"*\"\ncharge = {charge}"));
    one(&routes("[[routes]]\nmatch = \"*\""), "13:1", "[[routes]] has no `charge`");
    one(&charge("\"a\""), "15:10", "charge must be an array");
    one(&charge("[]"), "15:10", "empty");
    one(&charge("[\"c\"]"), "15:11", "no limit `c`");
    one(&charge("[\"a\", \"a\"]"), "15:16", "charged twice");
    one(&charge("[{ cost = 5 }]"), "15:11", "a charge has no `limit`");
    one(&charge("[{ limit = \"a\", costs = 5 }]"), "15:26", "unknown key `costs`");
    one(&charge("[{ limit = \"a\", cost = 0 }]"), "15:33", "cost must be a whole number from 1");
    one(&charge("[{ limit = \"a\", cost = -5 }]"), "15:33", "not -5");
    one(&charge("[{ limit = \"a\", cost = 0.5 }]"), "15:33", "not a float");
    one(&charge("[{ limit = \"a\", cost = nan }]"), "15:33", "not a float");
    one(
        &charge("[{ limit = \"a\", cost = 21 }]"),
        "15:33",
        "cost 21 never fits limit `a`, which takes 20 at most on plan `small`",
    );
    one(&charge("[3]"), "15:11", "a charge must be a table, not an integer");
    let by_item =
        routes("[limits.c]\nkey = [\"item\"]\nrate = \"1/s\"\n[[routes]]\nmatch = \"GET /x\"\ncharge = [\"c\"]");
    one(&by_item, "18:11", "the path has no {id}");
}

#[test]
fn matches() {
    let matched = |text: &str| routes(&format!("[[routes]]\nmatch = {text}\ncharge = [\"a\"]"));
    one(&routes("[[routes]]\ncharge = [\"a\"]"), "13:1", "[[routes]] has no `match`");
    one(&matched("5"), "14:9", "match must be a string");
    one(&matched("\"/api\""), "14:9", "not a method and a path");
    one(&matched("\"get /api\""), "14:9", "not in upper case");
    one(&matched("\"GET api\""), "14:9", "does not start with `/`");
    let two = |a: &str, b: &str| {
        routes(&format!("[[routes]]\nmatch = \"{a}\"\ncharge = [\"a\"]\n[[routes]]\nmatch = \"{b}\"\ncharge = [\"a\"]"))
    };
    one(&two("GET /x", "GET /x"), "17:9", "matches the same requests as `GET /x` in line 14");
    one(&two("GET /x/{a}", "HEAD,GET /x/{b}"), "17:9", "line 14");
    one(&two("*", "* /**"), "17:9", "line 14");
}

#[test]
fn exemptions() {
    let exempt = |exempt: &str, route: &str| {
        routes(&format!("[[exempt]]\n{exempt}\n[[routes]]\nmatch = \"{route}\"\ncharge = [\"a\"]"))
    };
    one(&exempt("match = \"GET /h\"", "*"), "13:1", "[[exempt]] has no `why`");
    one(&exempt("match = \"GET /h\"\nwhy = \" \"", "*"), "15:7", "`why` is empty");
    one(&exempt("match = \"GET /h\"\nwhy = \"x\"\nwhen = 3", "*"), "16:1", "unknown key `when`");
    one(&exempt("match = \"* /h/*\"\nwhy = \"x\"", "GET /h/{id}"), "17:9", "unreachable");
}

#[test]
fn cors_is_declared_once_and_not_with_credentials_for_everybody() {
    let on_route = routes("[[routes]]\nmatch = \"*\"\ncharge = [\"a\"]\ncors = true");
    one(&on_route, "16:8", "the policy has no [http] cors");
    let http = |line: &str| format!("version = 1\n[http]\n{line}\n");
    let any = http("cors = { origins = [\"*\"], credentials = true }");
    one(&any, "3:41", "browsers refuse credentials where any origin is allowed");
    one(&http("cors = { origins = [\"https://a.example/\"] }"), "3:21", "is not an origin");
    one(&http("legacy_headers = [\"X-Ratelimit\"]"), "3:19", "a family of headers cannot be");
}

#[test]
fn shards() {
    let with = |line: &str| extra(&format!("shards = 4\n{line}"));
    one(&extra("shards = 1"), "5:10", "shards must be a whole number from 2 to 100, not 1");
    one(&extra("shards = 101"), "5:10", "from 2 to 100, not 101");
    one(&extra("shards = \"4\""), "5:10", "shards must be a whole number");
    one(&with("penalty = { first = \"1min\" }"), "6:11", "cannot lock");
    one(&with("atomic = true"), "6:10", "in no transaction");
    one(&with("lease = 10"), "6:9", "is not leased");
    one(&with("own_item = false"), "6:12", "items of its own");
    one(&with("algorithm = \"pacer\""), "5:10", "a pacer has no shards");
    let log = "shards = 4\nalgorithm = \"sliding-log\"";
    one(&limit(&format!("key = [\"user\"]\nrate = \"8/h\"\n{log}")), "5:10", "a log has no shards");
    one(&with("burst = 3"), "5:10", "4 shards of 3 at once (50/h) leave some without a call");
    one(&limit("key = [\"user\"]\nrate = \"1/150year\"\nburst = 4\nshards = 2"), "6:10", "slower than a rate can be");
    let plan = with("plans.small = { rate = \"2/h\" }\n[plans]\nnames = [\"small\"]");
    one(&plan, "5:10", "4 shards of 2 at once (2/h)");
    for fine in ["atomic = false", "own_item = true", "algorithm = \"fixed-window\"", "debt = 2"] {
        assert!(tollgate_policy::Policy::parse(&with(fine)).is_ok(), "{fine}");
    }
}

#[test]
fn what_a_route_cannot_charge_on_shards() {
    let text = |a: &str, rest: &str| {
        let a = format!("version = 1\n[limits.a]\nkey = [\"user\"]\nrate = \"50/h\"\nshards = 4\n{a}");
        format!("{a}\n[limits.b]\nkey = [\"tenant\"]\nrate = \"50/h\"\n[[routes]]\nmatch = \"*\"\n{rest}")
    };
    let charge = "charge = [\"a\", \"b\"]";
    assert!(tollgate_policy::Policy::parse(&text("", charge)).is_ok());
    one(&text("", &format!("{charge}\natomic = true")), "12:10", "limit `a` has shards, and is in no transaction");
    let of_limit = text("", charge).replace("[limits.b]", "[limits.b]\natomic = true");
    one(&of_limit, "13:10", "limit `a` has shards");
    let costing = |cost: u64| text("", &format!("charge = [{{ limit = \"a\", cost = {cost} }}]"));
    assert!(tollgate_policy::Policy::parse(&costing(12)).is_ok());
    one(&costing(13), "12:33", "cost 13 never fits limit `a`, which takes 12 at most in its smallest shard");
}

/// An operator's order is one transaction on all items of a caller, of whichever secret.
#[test]
fn more_shards_than_an_order_reaches() {
    let text = |shards: u64| {
        format!(
            "version = 1\n[identity]\nstaff = {{ from = \"claims.staff\", personal = true }}\n[limits.a]\nkey = [\"staff\"]\n\
             rate = \"500/h\"\nshards = {shards}\n"
        )
    };
    assert!(tollgate_policy::Policy::parse(&text(25)).is_ok());
    one(&text(26), "4:9", "26 shards for each of up to 4 secrets");
    assert!(tollgate_policy::Policy::parse(&text(100).replace("personal = true", "personal = false")).is_ok());
}
