//! `tollgate replay` as its users see it: several logs, identity, another policy, suggestions, the page.

use crate::harness::{json, repository, run, stderr, stdout, tollgate};
use std::io::Write;
use std::path::Path;

const PER_IP: &str = "version = 1\n[limits.per-ip]\nkey = ['client_ip']\nrate = '10/min'\nburst = 5\n";

fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn combined(ip: &str, user: &str, second: u64, path: &str) -> String {
    let (minute, second) = (second / 60, second % 60);
    format!("{ip} - {user} [17/May/2015:10:{minute:02}:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 5 \"-\" \"x\"\n")
}

fn gateway(user: &str, plan: &str, second: u64) -> String {
    let millis = 1_431_857_100_000 + second * 1000;
    format!(
        "{{\"requestTimeEpoch\":\"{millis}\",\"ip\":\"192.0.2.1\",\"httpMethod\":\"GET\",\"path\":\"/\",\"status\":\"200\",\"who\":\"{user}\",\"plan\":\"{plan}\"}}\n"
    )
}

#[test]
fn patterns_compressed_files_and_other_formats_are_one_replay() {
    let dir = tempfile::tempdir().unwrap();
    let policy = write(dir.path(), "p.toml", PER_IP);
    write(dir.path(), "a.log", &(0..4).map(|at| combined("192.0.2.1", "-", 300 + at, "/")).collect::<String>());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    // The same seconds of the same address: four more in a bucket of five.
    gzip.write_all((0..4).map(|at| gateway("alice", "free", at + 3)).collect::<String>().as_bytes()).unwrap();
    std::fs::write(dir.path().join("b.log"), gzip.finish().unwrap()).unwrap();
    let pattern = format!("{}/[ab]*.log", dir.path().display());
    let report = json(&run(&["replay", &pattern, "--policy", &policy, "--json"]));
    assert_eq!(
        (&report["requests"], &report["files"][0]["format"], &report["files"][1]["format"]),
        (&8.into(), &"combined".into(), &"api-gateway".into())
    );
    let limit = &report["limits"]["per-ip"];
    assert_eq!((&limit["allowed"], &limit["denied"]), (&6.into(), &2.into()), "{report}");
    let none = run(&["replay", &format!("{}/*.gz", dir.path().display()), "--policy", &policy]);
    assert!(
        none.status.code() == Some(1) && stderr(&none).contains("no file is called like that"),
        "{}",
        stderr(&none)
    );
    let folder = run(&["replay", dir.path().to_str().unwrap(), "--policy", &policy]);
    assert!(folder.status.code() == Some(1) && stderr(&folder).contains("is a folder"), "{}", stderr(&folder));
}

#[test]
fn who_asks_is_told_by_the_fields_that_are_named_and_what_is_missing_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let policy = "version = 1\n[plans]\nnames = ['free', 'pro']\ndefault = 'free'\n\
        [limits.orders]\nkey = ['user']\nrate = '1/h'\nplans.pro = { rate = '3/h' }\n[limits.tenant]\nkey = ['tenant']\nrate = '1/h'\n";
    let policy = write(dir.path(), "p.toml", policy);
    let log: String = [("alice", "free"), ("bob", "pro"), ("carol", "-")]
        .iter()
        .flat_map(|(user, plan)| (0..3).map(|at| gateway(user, plan, at)))
        .collect();
    let log = write(dir.path(), "gateway.json", &log);
    let report = json(&run(&["replay", &log, "--policy", &policy, "--json"]));
    assert_eq!(report["limits"]["orders"]["missing"]["user"], 9, "{report}");
    let replayed = |options: &[&str]| {
        run(&[&["replay", &log, "--policy", &policy, "--identity", "user=who"][..], options].concat())
    };
    let orders = |options: &[&str]| {
        let report = json(&replayed(&[options, &["--json"]].concat()));
        assert_eq!(report["limits"]["tenant"]["missing_dimension"], 9);
        ["allowed", "denied"].map(|count| report["limits"]["orders"][count].as_u64().unwrap())
    };
    assert_eq!(orders(&[]), [5, 4], "bob is on pro, and carol on the default");
    assert_eq!(orders(&["--plan", "pro"]), [7, 2], "and carol is on pro, too");
    assert!(stdout(&replayed(&[])).contains("tenant: 9 requests are not decided, since the log has no `tenant`"));
    for wrong in [["--plan", "gold"], ["--identity", "user"], ["--identity", "usr=who"]] {
        assert_eq!(replayed(&wrong).status.code(), Some(1), "{wrong:?}");
    }
}

#[test]
fn another_policy_is_told_by_whom_it_newly_denies_and_frees() {
    let dir = tempfile::tempdir().unwrap();
    let before = write(dir.path(), "before.toml", "version = 1\n[limits.a]\nkey = ['user']\nrate = '2/h'\n");
    let after =
        "version = 1\n[limits.a]\nkey = ['user']\nrate = '3/h'\n[limits.b]\nkey = ['client_ip']\nrate = '4/h'\n";
    let after = write(dir.path(), "after.toml", after);
    // Alice asks three times from one address; bob, carol and dave twice each from another.
    let mut log: String = (0..3).map(|at| combined("192.0.2.1", "alice", at, "/")).collect();
    log.extend((0..6).map(|at| combined("192.0.2.2", ["bob", "carol", "dave"][at as usize / 2], at, "/")));
    let log = write(dir.path(), "log", &log);
    let options = ["replay", &log, "--policy", &before, "--compare", &after];
    let report = json(&run(&[&options[..], &["--json"]].concat()));
    let compare = &report["compare"];
    assert_eq!((&report["denied"], &compare["denied"]), (&1.into(), &2.into()), "{report}");
    let expected =
        serde_json::json!({"requests": 1, "clients": 1, "top": [{"client": "user:alice", "requests": 1, "of": 3}]});
    assert_eq!(compare["freed"], expected);
    let expected =
        serde_json::json!({"requests": 2, "clients": 1, "top": [{"client": "user:dave", "requests": 2, "of": 2}]});
    assert_eq!(compare["newly_denied"], expected);
    assert_eq!((&compare["same_allowed"], &compare["same_denied"]), (&6.into(), &0.into()));
    assert_eq!(
        compare["limits"]["b"],
        serde_json::json!({"before": null, "after": {"allowed": 7, "denied": 2},
        "newly_denied": expected, "freed": {"requests": 0, "clients": 0, "top": []}})
    );
    let text = stdout(&run(&options));
    assert!(text.contains("newly denied") && text.contains("user:dave"), "{text}");
}

#[test]
fn suggested_limits_are_a_policy_and_deny_as_many_as_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let policy = write(dir.path(), "p.toml", PER_IP);
    // 99 addresses ask once a minute, and one asks 30 times in three seconds.
    let calm =
        (0..99).flat_map(|client| (0..3).map(move |at| combined(&format!("192.0.2.{client}"), "-", at * 60, "/")));
    let log: String = calm.chain((0..30).map(|at| combined("198.51.100.1", "-", at / 10, "/"))).collect();
    let log = write(dir.path(), "log", &log);
    let replayed = |percentile: &str| {
        json(&run(&["replay", &log, "--policy", &policy, &format!("--suggest={percentile}"), "--json"]))
    };
    let report = replayed("p99");
    let rows = report["suggest"]["limits"]["per-ip"]["rows"].as_array().unwrap();
    let row = |place: usize| {
        ["peak_per_second", "peak_per_minute", "per_minute", "burst", "keys_denied"]
            .map(|figure| rows[place][figure].as_u64().unwrap())
    };
    assert_eq!((row(0), row(2)), ([1, 1, 1, 1, 1], [1, 1, 1, 1, 1]));
    // At 30 a minute, one comes back every two seconds.
    assert_eq!(row(4), [10, 30, 30, 29, 0]);
    for percentile in ["p50", "p99.9", "max"] {
        let report = replayed(percentile);
        let suggested = report["suggest"]["policy"].as_str().unwrap();
        let file = write(dir.path(), "suggested.toml", suggested);
        let check = run(&["policy", "check", &file]);
        assert!(check.status.success() && !stdout(&check).contains("warning"), "{suggested}\n{}", stdout(&check));
        let again = json(&run(&["replay", &log, "--policy", &file, "--json"]));
        let row = report["suggest"]["limits"]["per-ip"]["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["percentile"] == percentile);
        assert_eq!(again["denied"], row.unwrap()["requests_denied"], "{suggested}");
    }
    // Limits of every kind of the sample policy, too.
    let all: String = ["/api/orders", "/api/search", "/api/partner/items", "/api/auth/login"]
        .iter()
        .map(|path| {
            combined("192.0.2.1", "alice", 1, path)
                .replace("GET /api/orders", "POST /api/orders")
                .replace("GET /api/auth", "POST /api/auth")
        })
        .collect();
    let all = write(dir.path(), "all.log", &all);
    let sample = repository("infra/tollgate.toml");
    let mut command = tollgate();
    command.env("TOLLGATE_KEY_SECRETS", "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8");
    let output =
        command.args(["replay", &all, "--policy", sample.to_str().unwrap(), "--suggest", "--json"]).output().unwrap();
    let report = json(&output);
    let suggested = report["suggest"]["policy"].as_str().unwrap();
    let file = write(dir.path(), "sample.toml", suggested);
    let check = run(&["policy", "check", &file]);
    assert!(check.status.success() && suggested.contains("[limits.orders]"), "{suggested}\n{}", stdout(&check));
}

#[test]
fn the_page_shows_hostile_lines_as_text_and_loads_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let policy = write(dir.path(), "p.toml", "version = 1\n[limits.who]\nkey = ['user ?? client_ip']\nrate = '1/h'\n");
    let hostile = "<script>alert(1)</script>";
    let mut log: String = (0..40).map(|at| combined("192.0.2.1", &format!("\\x22'{hostile}"), at * 7, "/")).collect();
    log.push_str(&format!("</code>{hostile}\u{1b}[31m\n"));
    let waf = format!(
        "{{\"timestamp\":1431857100000,\"action\":\"BLOCK\",\"terminatingRuleId\":\"{hostile}\",\"httpRequest\":{{\"clientIp\":\"192.0.2.1\",\"uri\":\"/\",\"httpMethod\":\"GET\"}}}}\n"
    );
    let (log, waf) = (write(dir.path(), "<b>.log", &log), write(dir.path(), "waf.json", &waf));
    let html = dir.path().join("report.html");
    let options = ["--policy", &policy, "--compare", &policy, "--suggest", "--html", html.to_str().unwrap()];
    let output = run(&[&["replay", &log, &waf][..], &options].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("&lt;b&gt;.log"), "{page}");
    for never in ["<script", "<b>", "</code>&lt;/code", "\u{1b}", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(never), "{never}: {page}");
    }
    assert_eq!((page.matches("<svg").count(), page.matches("</html>").count()), (1, 1));
    // Namespaces are names, and nothing that is loaded.
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
}
