//! The console (`/` of `tollgate dev`), driven in a browser: every figure that it shows is one of `/dev/stats` of the same run.

use crate::browser::{Browser, Page, Scheme, keep};
use crate::dev::Dev;
use crate::harness::PATIENCE;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A server, and somebody at its console.
struct Visit<'v> {
    dev: &'v Dev,
    page: Page<'v>,
}

impl<'v> Visit<'v> {
    fn to(dev: &'v Dev, browser: &'v mut Browser) -> Self {
        let page = browser.open(&dev.local("/"));
        Self { dev, page }
    }

    /// What an attribute's bearers show, by its value, as numbers.
    fn shown(&mut self, attribute: &str, within: &str) -> Map<String, Value> {
        let shown = self.page.eval(&format!(
            "Object.fromEntries([...document.querySelectorAll('{within} [data-{attribute}]')].map((it) =>
               [it.dataset.{attribute}, Number(it.textContent.replace(/^.* × /, '').replaceAll(',', ''))]))"
        ));
        shown.as_object().unwrap().clone()
    }

    /// Waits until the page shows what the server has counted, and asserts that of each figure.
    fn shows_what_is_counted(&mut self) -> Value {
        let began = Instant::now();
        loop {
            let stats = self.dev.stats();
            let figures = self.shown("figure", "#figures");
            let told: Map<_, _> = figures.keys().map(|name| (name.clone(), stats[name].clone())).collect();
            let (said, answered) = (self.shown("said", "#limits"), self.shown("answer", "#answers"));
            let state = ["#breaker", "#table"].map(|of| self.page.text(of));
            let is_right = [&figures, &said, &answered] == [&told, &limits(&stats), &answers(&stats)]
                && state == [stats["breaker"].as_str().unwrap().replace('_', " "), table(&stats)];
            if is_right {
                return stats;
            }
            assert!(began.elapsed() < PATIENCE, "{figures:?} {said:?} {answered:?} {state:?} instead of {stats}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Plays a scenario, which comes to what it says; what it has added is what the server has counted meanwhile.
    fn plays(&mut self, name: &str) -> Growth {
        let before = self.dev.stats();
        self.page.click(&format!("[data-play={name}]"));
        self.is_played(before)
    }

    fn is_played(&mut self, before: Value) -> Growth {
        self.page.wait("['done', 'failed', 'stopped'].includes(document.querySelector('#run').dataset.state)");
        let verdict = self.page.text("#verdict");
        let run = self.page.eval("({ ...document.querySelector('#run').dataset })");
        assert_eq!(
            (&run["state"], &run["holds"]),
            (&json!("done"), &json!("true")),
            "{verdict} {}",
            self.page.text("#measured")
        );
        let grown = Growth { before, after: self.shows_what_is_counted() };
        assert_eq!(self.shown("run", "#measured"), grown.as_shown(), "{verdict}");
        grown
    }
}

/// The table's cells, as the figures have them.
fn limits(stats: &Value) -> Map<String, Value> {
    let mut cells = Map::new();
    for word in stats["limits"].as_array().unwrap() {
        let [layer, limit, outcome] = ["layer", "limit", "outcome"].map(|name| word[name].as_str().unwrap());
        for column in ["allowed", "denied", "never_fits", "shadow_denied", "open", "closed"] {
            cells.entry(format!("{layer}/{limit}/{column}")).or_insert(json!(0));
        }
        let column = if outcome == "shadow_never_fits" { "shadow_denied" } else { outcome };
        let cell = &mut cells[&format!("{layer}/{limit}/{column}")];
        *cell = json!(cell.as_u64().unwrap() + word["n"].as_u64().unwrap());
    }
    cells
}

fn answers(stats: &Value) -> Map<String, Value> {
    let all = stats["answers"].as_array().unwrap().iter();
    all.map(|of| (format!("{}/{}", of["layer"].as_str().unwrap(), of["status"]), of["n"].clone())).collect()
}

fn table(stats: &Value) -> String {
    let word = match stats["fault"]["store"].as_str().unwrap() {
        "ok" => "works",
        "pause" => "says nothing",
        "error" => "fails",
        other => panic!("{other}"),
    };
    word.to_owned()
}

/// What the figures have grown by.
struct Growth {
    before: Value,
    after: Value,
}

impl Growth {
    fn of(&self, name: &str) -> u64 {
        self.after[name].as_u64().unwrap() - self.before[name].as_u64().unwrap()
    }

    /// By how much a list of counts has grown, by the name that `key` makes of an entry.
    fn list(&self, name: &str, key: impl Fn(&Value) -> String) -> Map<String, Value> {
        let n = |of: &Value| of["n"].as_u64().unwrap();
        let before: Map<String, Value> =
            self.before[name].as_array().unwrap().iter().map(|of| (key(of), json!(n(of)))).collect();
        let grown = self.after[name].as_array().unwrap().iter().map(|of| {
            let old = before.get(&key(of)).and_then(Value::as_u64).unwrap_or(0);
            (key(of), json!(n(of) - old))
        });
        grown.filter(|(_, n)| *n != 0).collect()
    }

    fn said(&self) -> Map<String, Value> {
        let names = ["layer", "limit", "outcome", "source"];
        self.list("limits", |of| names.map(|name| of[name].as_str().unwrap()).join("/"))
    }

    /// Of all sources together.
    fn word(&self, layer: &str, limit: &str, outcome: &str) -> u64 {
        let start = format!("{layer}/{limit}/{outcome}/");
        self.said().iter().filter(|(name, _)| name.starts_with(&start)).map(|(_, n)| n.as_u64().unwrap()).sum()
    }

    fn answered(&self, layer: &str, status: u16) -> u64 {
        let grown = self.list("answers", |of| format!("{}/{}", of["layer"].as_str().unwrap(), of["status"]));
        grown.get(&format!("{layer}/{status}")).and_then(Value::as_u64).unwrap_or(0)
    }

    /// As the console lists it.
    fn as_shown(&self) -> Map<String, Value> {
        let mut shown = self.said();
        shown.extend(["decisions", "round_trips", "write_units"].map(|name| (name.to_owned(), json!(self.of(name)))));
        shown.extend(self.list("answers", |of| format!("{}/{}", of["layer"].as_str().unwrap(), of["status"])));
        shown
    }
}

/// Somebody at the console of a server of his own; nobody where there is no browser.
fn visit(then: impl FnOnce(&mut Visit<'_>)) {
    let dev = Dev::start(&["--clock", "manual"]);
    let Some(mut browser) = Browser::start() else { return };
    let mut visit = Visit::to(&dev, &mut browser);
    then(&mut visit);
}

#[test]
fn a_burst_at_the_boundary_passes_a_fixed_window_twice_and_a_sliding_one_once() {
    visit(|visit| {
        let grown = visit.plays("boundary");
        let [fixed, sliding] = ["scenario-fixed", "scenario-sliding"]
            .map(|limit| [grown.word("limiter", limit, "allowed"), grown.word("limiter", limit, "denied")]);
        assert_eq!((fixed, sliding), ([200, 0], [101, 99]));
        assert_eq!((grown.of("decisions"), grown.answered("limiter", 200)), (400, 400));
    });
}

#[test]
fn a_steady_caller_gets_what_the_bucket_fills_with() {
    visit(|visit| {
        let grown = visit.plays("steady");
        assert_eq!(grown.word("limiter", "scenario-bucket", "allowed"), 1 + 90);
        assert_eq!(grown.word("limiter", "scenario-bucket", "denied"), 10);
    });
}

#[test]
fn of_forty_at_once_ten_pass_and_the_gauge_is_empty() {
    visit(|visit| {
        let grown = visit.plays("at-once");
        assert_eq!((grown.of("allowed"), grown.of("denied")), (10, 30));
        visit.page.wait_for_text("[data-gauge$='/scenario-bucket']", "0 of 10");
        let key = visit.page.eval("document.querySelector('.bucket').dataset.key");
        let told = visit.dev.ask("GET", &format!("/dev/items?key={}", key.as_str().unwrap()), "").2;
        visit.page.eval("document.querySelector('.bucket details').open = true");
        for (name, value) in told["raw"].as_object().unwrap() {
            visit.page.wait_for_text(".bucket dl", name);
            visit.page.wait_for_text(".bucket dl", value.as_str().unwrap());
        }
        assert_eq!(visit.dev.stats()["round_trips"], grown.after["round_trips"], "looking is not counted");
        let chart = visit.page.eval("document.querySelector('#timeline').getAttribute('aria-label')");
        assert_eq!(chart, "All requests: 10 allowed, 30 denied, 0 without the table");
        visit.page.eval(
            "{ const it = document.querySelector('#of'); it.value = 'limiter · scenario-bucket'; it.dispatchEvent(new Event('change')); }",
        );
        let chart = visit.page.eval("document.querySelector('#timeline').getAttribute('aria-label')");
        assert_eq!(chart, "limiter · scenario-bucket: 10 allowed, 30 denied, 0 without the table");
        assert_eq!(visit.page.eval("document.querySelectorAll('#live li').length"), 40);
    });
}

#[test]
fn while_the_table_says_nothing_some_go_on_and_others_are_refused_and_then_it_is_back() {
    visit(|visit| {
        let grown = visit.plays("paused");
        assert_eq!(grown.answered("api", 503), 8);
        assert_eq!(
            grown.answered("api", 200) + grown.answered("api", 429) + 8,
            grown.word("edge", "tollgate-rate-all", "allowed")
        );
        assert_eq!((grown.of("breaker_opened"), grown.of("breaker_closed")), (1, 1));
    });
}

#[test]
fn five_guesses_of_a_code_are_looked_at_and_the_right_one_comes_too_late() {
    visit(|visit| {
        let grown = visit.plays("otp");
        assert_eq!([202, 401, 429, 200].map(|status| grown.answered("otp", status)), [1, 5, 1, 0]);
    });
}

#[test]
fn whoever_pumps_messages_is_asked_for_a_captcha_after_a_dozen() {
    visit(|visit| {
        let grown = visit.plays("pumping");
        assert_eq!([202, 403].map(|status| grown.answered("otp", status)), [12, 12]);
        assert_eq!(grown.of("messages_refused"), 12);
    });
}

#[test]
fn a_payout_account_is_changed_after_a_code_of_just_now_alone() {
    visit(|visit| {
        let grown = visit.plays("step-up");
        assert_eq!([401, 200].map(|status| grown.answered("api", status)), [3, 1]);
        assert_eq!(grown.of("step_ups_required"), 3);
    });
}

#[test]
fn what_is_set_there_is_set_and_shown() {
    visit(|visit| {
        let before = visit.dev.stats()["now_ms"].as_u64().unwrap();
        visit.page.click("[data-advance='60000']");
        visit.page.click("#faults [value=error]");
        visit.page.wait_for_text("#table", "fails");
        let stats = visit.shows_what_is_counted();
        assert_eq!(stats["now_ms"], before + 60_000);
        assert_eq!(visit.dev.ask_with("GET", "/api/export", "x-dev-principal: user=eve\r\n", "").0, 503);
        visit.shows_what_is_counted();
        visit.page.wait_for_text("#live li", "closed");
        visit.page.click("#faults [value=ok]");
        visit.page.wait_for_text("#table", "works");
    });
}

#[test]
fn it_is_worked_by_keyboard_and_everything_has_a_name() {
    visit(|visit| {
        visit.shows_what_is_counted();
        visit.page.press("Tab");
        assert_eq!(visit.page.eval("document.activeElement.className"), "skip");
        visit.page.press("Enter");
        let before = visit.dev.stats();
        while visit.page.eval("document.activeElement.dataset.play") != "at-once" {
            visit.page.press("Tab");
            assert_ne!(visit.page.eval("document.activeElement.tagName"), "BODY", "it is not reached");
        }
        visit.page.press("Enter");
        assert_eq!(visit.is_played(before).of("allowed"), 10);
        let nameless = "[...document.querySelectorAll('button, select, input, meter, progress, [role=img], [role=region]')]
            .filter((it) => !(it.ariaLabel || it.getAttribute('aria-labelledby') || it.labels?.length || it.textContent.trim()))
            .map((it) => it.outerHTML)";
        assert_eq!(visit.page.eval(nameless), json!([]));
    });
}

#[test]
fn it_fits_every_screen() {
    visit(|visit| {
        for user in ["alice", "bob"] {
            for _ in 0..4 {
                let principal = format!("x-dev-principal: user={user},tenant=acme,plan=free\r\n");
                visit.dev.ask_with("POST", "/api/orders", &principal, "{}");
            }
        }
        visit.plays("boundary");
        visit.page.wait_for_text("[data-gauge$='/scenario-fixed']", "0 of 100");
        for (width, height, scheme, name) in [
            (1360, 1000, Scheme::Light, "console-light.webp"),
            (1360, 1000, Scheme::Dark, "console-dark.webp"),
            (390, 844, Scheme::Light, "console-phone.webp"),
        ] {
            visit.page.show_on(width, height, scheme);
            visit.page.eval("scrollTo(0, 0)");
            visit.page.wait("document.querySelector('#timeline canvas').getBoundingClientRect().right <= innerWidth");
            assert_eq!(visit.page.overflow(), 0, "{name}");
            keep(name, &visit.page.picture());
        }
    });
}

/// The first message of `/dev/events`.
fn news(dev: &Dev, query: &str, headers: &str) -> (String, Value) {
    let mut stream = TcpStream::connect(dev.addr()).unwrap();
    write!(stream, "GET /dev/events{query} HTTP/1.1\r\nhost: x\r\n{headers}\r\n").unwrap();
    let (mut id, mut lines) = (String::new(), BufReader::new(stream).lines().map(Result::unwrap));
    loop {
        let line = lines.next().unwrap();
        if let Some(told) = line.strip_prefix("id: ") {
            told.clone_into(&mut id);
        } else if let Some(data) = line.strip_prefix("data: ") {
            return (id, serde_json::from_str(data).unwrap());
        }
    }
}

#[test]
fn news_goes_on_where_somebody_left_off_and_only_the_newest_are_kept() {
    let dev = Dev::start(&["--clock", "manual"]);
    for _ in 0..1003 {
        dev.ask("GET", "/healthz", "");
    }
    let numbers = |told: &Value| {
        told["requests"].as_array().unwrap().iter().map(|of| of["number"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let (id, first) = news(&dev, "", "");
    assert_eq!((&first["missed"], numbers(&first)), (&json!(3), (4..254).collect()));
    assert_eq!(first["stats"]["answers"], json!([{ "layer": "api", "status": 200, "n": 1003 }]));
    let (_, next) = news(&dev, "?after=1", &format!("last-event-id: {id}\r\n"));
    assert_eq!((&next["missed"], numbers(&next)), (&json!(0), (254..504).collect()));
    let (id, last) = news(&dev, "?after=1003", "");
    assert_eq!((id.as_str(), &last["missed"], numbers(&last)), ("1003", &json!(0), vec![]));
}

#[test]
fn what_limits_have_said_sums_up_the_decisions_that_are_counted() {
    let dev = Dev::start(&["--clock", "manual"]);
    let order = |n: usize| {
        for _ in 0..n {
            dev.ask_with("POST", "/api/orders", "x-dev-principal: user=alice,tenant=acme,plan=free\r\n", "{}");
        }
    };
    order(53);
    dev.ask("POST", "/dev/faults", r#"{"store":"error"}"#);
    assert_eq!(dev.ask_with("GET", "/api/export", "x-dev-principal: user=eve\r\n", "").0, 503);
    let said = limits(&dev.stats());
    assert_eq!((&said["api/orders/allowed"], &said["api/orders/denied"]), (&json!(50), &json!(3)));
    assert_eq!((&said["api/units/closed"], &said["edge/tollgate-rate-all/allowed"]), (&json!(1), &json!(54)));
    let (_, told) = news(&dev, "?after=52", "");
    let denied = &told["requests"][0];
    assert_eq!(
        (&denied["status"], &denied["path"], &denied["layer"]),
        (&json!(429), &json!("/api/orders"), &json!("api"))
    );
    let orders = denied["limits"].as_array().unwrap().iter().find(|of| of["limit"] == "orders").unwrap();
    assert_eq!(
        (&orders["outcome"], &orders["retry_after_ms"], &orders["most"]),
        (&json!("denied"), &json!(72_000), &json!(50))
    );
    assert_eq!(dev.ask("GET", "/dev/items?key=nobody:x", "").0, 400);
}

#[test]
fn pages_run_and_load_nothing_but_files_of_this_server() {
    let dev = Dev::start(&["--clock", "manual"]);
    for page in ["/", "/mfa"] {
        let answer = dev.answer("GET", page, "accept: text/html\r\n", "");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let policy = head.lines().find_map(|line| line.strip_prefix("content-security-policy: ")).unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(!body.contains(" style=") && !body.contains(" onclick=") && !body.contains("<script>"), "{page}");
        for link in body.split(['"', '\'']).filter(|link| link.starts_with("/dev/assets/") || link.contains("//")) {
            let (status, head, _) = dev.ask("GET", link, "");
            assert!(status == 200 && head.contains("nosniff"), "{link}: {head}");
        }
    }
    assert_eq!(dev.ask("GET", "/dev/assets/../Cargo.toml", "").0, 404);
    assert_eq!(dev.ask("POST", "/", "").0, 404, "other methods are the API's");
}

/// uPlot 1.6.32, as `npm pack uplot@1.6.32` has it; its licence stands beside it.
#[test]
fn the_chart_library_is_the_one_that_was_published() {
    let dev = Dev::start(&["--clock", "manual"]);
    for (name, published) in [
        ("uPlot.iife.min.js", "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"),
        ("uPlot.min.css", "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"),
    ] {
        let answer = dev.answer("GET", &format!("/dev/assets/uplot/{name}"), "", "");
        let digest = digest(&SHA256, answer.split_once("\r\n\r\n").unwrap().1.as_bytes());
        let hex = digest.as_ref().iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        assert_eq!(hex, published, "{name}");
    }
}
