//! The secrets that personal values are hashed under are rotated while a ban and an override are in force: the steps that the
//! README gives, by the real command on a running server's table; and what happens without them.

use crate::dev::Dev;
use crate::harness::{Client, SECOND, bucket, json, key, stderr, stdout, tollgate};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Output, Stdio};
use std::time::Duration;
use tollgate::Store;
use tollgate_core::{Hold, LimitName, Override};
use tollgate_dynamodb::admin::{self, Order};

const OLD: &str = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const NEW: &str = "k2=__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA";

const POLICY: &str = "
version = 1
[identity]
account = { body = 'username', fold = 'email' }
[limits.mails]
key = ['account']
rate = '2/h'
[limits.logins]
key = ['account']
rate = '5/h'
own_item = true
[limits.orders]
key = ['user']
rate = '50/h'
[[routes]]
match = 'POST /orders'
charge = ['mails', 'logins', 'orders']
";

/// A table whose server hashes under the old secret.
struct Rotation {
    policy: tempfile::NamedTempFile,
    before: Dev,
    at: [String; 4],
}

impl Rotation {
    fn start() -> Self {
        Self::under(POLICY)
    }

    fn under(text: &str) -> Self {
        let mut policy = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        policy.write_all(text.as_bytes()).unwrap();
        let before = Dev::start_under(OLD, &["--policy", policy.path().to_str().unwrap()]);
        let stats = before.stats();
        let of = |name: &str| stats[name].as_str().unwrap().to_owned();
        let at = ["--endpoint-url".to_owned(), of("dynamodb_endpoint"), "--table".to_owned(), of("table")];
        Self { policy, before, at }
    }

    /// Another server on the same table, as a function after a deployment.
    fn deploy(&self, secrets: &str) -> Dev {
        let at: Vec<_> = self.at.iter().map(String::as_str).collect();
        Dev::start_under(secrets, &[&at[..], &["--policy", self.policy.path().to_str().unwrap()]].concat())
    }

    fn tool(&self, secrets: Option<&str>, args: &[&str], input: &str) -> Output {
        let mut command = tollgate();
        command.args(args).args(&self.at).arg("--policy").arg(self.policy.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(secrets) = secrets {
            command.env("TOLLGATE_KEY_SECRETS", secrets);
        }
        let mut child = command.spawn().unwrap();
        // A command that does not read its input may be gone by now.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn does(&self, secrets: &str, args: &[&str]) -> Value {
        let output = self.tool(Some(secrets), &[args, &["--json"]].concat(), "");
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        json(&output)
    }

    /// Whether the old secret can go, and what would go with it.
    fn check(&self) -> (bool, Vec<Value>) {
        let output = self.tool(Some(&both()), &["holds", "--under", "k1", "--json"], "");
        let told = json(&output);
        let safe = told["retiring"]["safe"].as_bool().unwrap();
        assert_eq!((output.status.success(), stderr(&output).is_empty()), (safe, safe), "{told}");
        (safe, told["holds"].as_array().unwrap().clone())
    }
}

/// For how long the old secret is to be kept once all functions have the new one, in seconds.
fn horizon_secs(rotation: &Rotation) -> u64 {
    let output = rotation.tool(Some(&both()), &["holds", "--under", "k1", "--json"], "");
    json(&output)["retiring"]["horizon_secs"].as_u64().unwrap()
}

/// What functions and operators have during the rotation.
fn both() -> String {
    format!("{NEW},{OLD}")
}

fn ask(server: &Dev, limit: &str, account: &str) -> Value {
    server.decide(&json!({ "limit": limit, "key": { "account": account } })).1
}

#[test]
fn a_ban_and_an_override_outlive_a_rotation_that_follows_the_steps() {
    let rotation = Rotation::start();
    let pro = ["override", "account:Pro@x.org", "--limit", "mails", "--rate", "100/h", "--for", "7day"];
    rotation.does(OLD, &pro);
    rotation.does(OLD, &["ban", "account:bad@x.org", "--for", "7day"]);
    assert_eq!(ask(&rotation.before, "mails", "pro@x.org")["remaining"], 99);

    // 1. The operator has both secrets, the functions have not; nothing is safe.
    let (safe, alone) = rotation.check();
    assert!(!safe && alone.len() == 3 && alone.iter().all(|hold| hold["under"] == json!(["k1"])), "{alone:?}");
    // 2. One is carried by name, the others from the list of all accounts.
    let carried = rotation.does(&both(), &["carry", "account:pro@x.org"]);
    assert_eq!(carried["holds"][0]["hold"]["overrides"]["mails"]["rate"], "100/h");
    assert_eq!(rotation.check().1.len(), 2);
    let accounts = "account:nobody@x.org\n\n account:BAD@x.org \naccount:pro@x.org\n";
    let output = rotation.tool(Some(&both()), &["carry", "-"], accounts);
    assert!(stdout(&output).ends_with("3 keys read, 3 with something in force\n"), "{}", stdout(&output));
    assert_eq!(rotation.check(), (true, Vec::new()));
    // 3. The functions get both: in force with the next decision, and 100 an hour on either item.
    let during = rotation.deploy(&both());
    for left in [98, 97, 96] {
        let answer = ask(&during, "mails", "pro@x.org");
        assert_eq!((&answer["held"], &answer["remaining"]), (&"override".into(), &left.into()), "{answer}");
    }
    assert_eq!(ask(&during, "mails", "bad@x.org")["held"], "ban");
    // What is set meanwhile is set under both, and needs no carrying.
    rotation.does(&both(), &["ban", "account:late@x.org", "--for", "7day"]);
    assert!(rotation.check().0);
    // 4. The old secret goes.
    let after = rotation.deploy(NEW);
    assert_eq!(ask(&after, "mails", "pro@x.org")["held"], "override");
    for account in ["bad@x.org", "late@x.org"] {
        for limit in ["mails", "logins"] {
            assert_eq!(ask(&after, limit, account)["held"], "ban", "{account} {limit}");
        }
    }
    // What is lifted during a rotation is lifted under both.
    rotation.does(&both(), &["allow", "account:late@x.org"]);
    assert_eq!(ask(&rotation.deploy(NEW), "mails", "late@x.org")["allowed"], true);
    assert_eq!(ask(&rotation.deploy(OLD), "mails", "late@x.org")["allowed"], true);
}

/// A function that has the new secret alone still knows who is locked, and for how long the next time.
#[test]
fn a_lock_is_carried_by_name_and_from_a_list() {
    let locking = POLICY.replace("rate = '5/h'", "rate = '1/s'\npenalty = { first = '1h', most = '2h' }");
    let rotation = Rotation::under(&locking);
    for account in ["one@x.org", "two@x.org"] {
        let answers = [(); 2].map(|()| ask(&rotation.before, "logins", account));
        assert_eq!(answers[1]["retry_after_ms"], 3_600_000, "{answers:?}");
    }
    let carried = rotation.does(&both(), &["carry", "account:One@x.org"]);
    let locks: Vec<_> = carried["holds"].as_array().unwrap().iter().map(|place| &place["locks"]["logins"]).collect();
    assert_eq!((locks.len(), &locks[0]["locked"], &locks[0]["level"]), (1, &true.into(), &0.into()), "{carried}");
    let output = rotation.tool(Some(&both()), &["carry", "-"], "account:two@x.org\naccount:nobody@x.org\n");
    assert!(stdout(&output).ends_with("2 keys read, 1 with something in force\n"), "{}", stdout(&output));
    assert!(stdout(&output).contains("logins locked until 2"), "{}", stdout(&output));
    let after = rotation.deploy(NEW);
    for account in ["one@x.org", "two@x.org"] {
        assert_eq!(ask(&after, "logins", account)["held"], "penalty", "{account}");
    }
    assert_eq!(ask(&after, "logins", "three@x.org")["allowed"], true);
    // While the secrets are rotated, what is remembered of locks counts like what is owed.
    assert!(horizon_secs(&rotation) > 86_400);
}

#[test]
fn what_is_set_for_a_limit_with_shards_is_carried_on_each_of_them() {
    let rotation = Rotation::under(&POLICY.replace("own_item = true", "shards = 4"));
    rotation.does(OLD, &["override", "account:pro@x.org", "--limit", "logins", "--rate", "40/h", "--for", "7day"]);
    rotation.does(OLD, &["ban", "account:bad@x.org", "--for", "7day"]);
    let (safe, alone) = rotation.check();
    assert!(!safe && alone.len() == 4 + 5, "{alone:?}");
    let output = rotation.tool(Some(&both()), &["carry", "-"], "account:pro@x.org\naccount:bad@x.org\n");
    assert!(stdout(&output).ends_with("2 keys read, 3 with something in force\n"), "{}", stdout(&output));
    assert_eq!(rotation.check(), (true, Vec::new()));
    let after = rotation.deploy(NEW);
    for _ in 0..12 {
        assert_eq!(ask(&after, "logins", "pro@x.org")["held"], "override", "whichever shard is asked");
    }
    assert_eq!(ask(&after, "logins", "bad@x.org")["held"], "ban");
}

/// What the steps are for, and what cannot hold without the value.
#[test]
fn without_carrying_an_override_does_not_count_and_the_check_keeps_the_old_secret_for_the_ban() {
    let rotation = Rotation::start();
    rotation.does(OLD, &["override", "account:pro@x.org", "--limit", "mails", "--rate", "100/h", "--for", "7day"]);
    let banned = rotation.does(OLD, &["ban", "account:bad@x.org", "--for", "7day"]);
    let shown = banned["key"].as_str().unwrap();
    let during = rotation.deploy(&both());
    assert_eq!([(); 3].map(|()| ask(&during, "mails", "pro@x.org")["allowed"] == true), [true, true, false]);
    assert_eq!(ask(&during, "mails", "bad@x.org")["held"], "ban", "either item denies");
    let output = rotation.tool(Some(&both()), &["holds", "--under", "k1"], "");
    let (text, error) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains(&format!("1/key/{shown} ")) && text.contains("; under k1\n"), "{text}");
    assert!(
        error.contains("3 in force") && error.contains("tollgate carry KEY") && error.contains("keep k1 until"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1);
    // An override set anew, by any spelling, reaches both.
    rotation.does(&both(), &["override", "account:PRO@x.org", "--limit", "mails", "--rate", "90/h", "--for", "7day"]);
    assert_eq!(ask(&rotation.deploy(&both()), "mails", "pro@x.org")["held"], "override");
    // By its hash the caller is known under one secret only.
    let refused = rotation.tool(Some(&both()), &["carry", shown], "");
    assert!(
        refused.status.code() == Some(1) && stderr(&refused).contains("as people write them"),
        "{}",
        stderr(&refused)
    );
    let set = ["override", shown, "--limit", "mails", "--rate", "90/h", "--for", "7day"];
    assert!(stderr(&rotation.tool(Some(&both()), &set, "")).contains("figures count only under all of them"));
    let banned = rotation.tool(Some(&both()), &["ban", shown], "");
    assert!(banned.status.success() && stderr(&banned).contains("under one secret of several"), "{}", stderr(&banned));
    assert!(!rotation.check().0);
    rotation.does(&both(), &["allow", "account:bad@x.org"]);
    assert!(rotation.check().0);
}

/// Whoever has used up an override would get a fresh bucket with the new secret, were the old one gone by the policy's figures.
#[test]
fn the_old_secret_is_kept_for_as_long_as_anything_under_it_is_remembered() {
    const HOUR: u64 = 3600;
    const DAY: u64 = 24 * HOUR;
    let rotation = Rotation::start();
    let set = |account: &str, limit: &str, figures: [&str; 2], lasting: &str| {
        let [rate, burst] = figures;
        let args = ["override", account, "--limit", limit, "--rate", rate, "--burst", burst, "--for", lasting];
        rotation.does(OLD, &args);
    };
    let keeps = |least: u64| {
        let secs = horizon_secs(&rotation);
        // Clocks and late writes are allowed for with minutes.
        assert!((least..least + HOUR).contains(&secs), "{secs} s for {least} s");
    };
    keeps(HOUR);
    // Whatever is not under the secret does not matter.
    rotation.does(OLD, &["override", "user:a", "--limit", "orders", "--rate", "1/year", "--for", "1day"]);
    keeps(HOUR);
    // A hundred calls that are owed when the override has ended are owed at two an hour then.
    set("account:pro@x.org", "mails", ["100/h", "100"], "7day");
    keeps(HOUR + 50 * HOUR);
    // Longer than any limit, on the shared item and on one of a limit's own; carried or not.
    set("account:a@x.org", "mails", ["1/30day", "1"], "60day");
    assert_eq!(ask(&rotation.before, "mails", "a@x.org")["allowed"], true);
    keeps(30 * DAY);
    set("account:b@x.org", "logins", ["1/40day", "1"], "60day");
    keeps(40 * DAY);
    for account in ["account:a@x.org", "account:b@x.org", "account:pro@x.org"] {
        rotation.does(&both(), &["carry", account]);
    }
    assert!(rotation.check().0);
    keeps(40 * DAY);
    assert_eq!(ask(&rotation.deploy(&both()), "mails", "a@x.org")["allowed"], false);
    let text = stdout(&rotation.tool(Some(&both()), &["holds", "--under", "k1"], ""));
    assert!(text.contains("limits and overrides remember"), "{text}");
    // What was lifted is still owed, and so is what an earlier policy has counted.
    rotation.does(&both(), &["allow", "account:a@x.org"]);
    keeps(40 * DAY);
    let mut earlier = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    earlier.write_all(POLICY.replace("2/h", "2/100day").as_bytes()).unwrap();
    let at: Vec<_> = rotation.at.iter().map(String::as_str).collect();
    let server = Dev::start_under(OLD, &[&at[..], &["--policy", earlier.path().to_str().unwrap()]].concat());
    assert_eq!(ask(&server, "mails", "early@x.org")["allowed"], true);
    keeps(100 * DAY);
}

/// A digest does not tell what is in it, so the policy has to: personal values alone are too short for one.
#[test]
fn a_hold_on_a_long_key_keeps_a_secret_only_where_such_a_key_can_have_a_personal_value() {
    let long = format!("user:{}", "x".repeat(300));
    let mixed = format!("{POLICY}[limits.both]\nkey = ['account', 'user']\nrate = '5/h'\n");
    for (policy, safe) in [(POLICY, true), (mixed.as_str(), false)] {
        let rotation = Rotation::under(policy);
        let banned = rotation.does(OLD, &["ban", &long, "--for", "3650day"]);
        assert!(banned["items"][0]["pk"].as_str().unwrap().starts_with("1/sha/"), "{banned}");
        assert_eq!(rotation.check().0, safe, "{policy}");
    }
}

#[test]
fn the_check_asks_for_a_secret_that_is_being_retired() {
    let rotation = Rotation::start();
    for (secrets, args, says) in [
        (OLD.to_owned(), &["holds", "--under", "k1"][..], "\"k1\" is the active secret"),
        (both(), &["holds", "--under", "k3"], "has no \"k3\" (it has: k2, k1)"),
        (OLD.to_owned(), &["carry", "account:a@x.org"], "nothing to carry to"),
        (both(), &["carry", "user:alice"], "is one key whatever the secret"),
        (
            NEW.to_owned(),
            &["inspect", "account:k1.AAAAAAAAAAAAAAAAAAAAAA"],
            "under secret \"k1\", which TOLLGATE_KEY_SECRETS does not",
        ),
    ] {
        let output = rotation.tool(Some(&secrets), args, "");
        assert!(output.status.code() == Some(1) && stderr(&output).contains(says), "{args:?}: {}", stderr(&output));
    }
    // Whoever may read the table may list it, without any secret.
    assert_eq!(stdout(&rotation.tool(None, &["holds"], "")), "nothing is set\n");
}

#[test]
fn a_bad_line_of_a_list_keeps_nobody_from_being_carried() {
    let rotation = Rotation::start();
    for account in ["account:a@x.org", "account:z@x.org"] {
        rotation.does(OLD, &["ban", account, "--for", "7day"]);
    }
    let list = "account:a@x.org\nacount:b@x.org\n\nb@x.org\nuser:a\naccount:z@x.org\n";
    let output = rotation.tool(Some(&both()), &["carry", "-"], list);
    let (text, error) = (stdout(&output), stderr(&output));
    assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
    assert!(error.contains("on line 2, 4, 5 of standard input"), "{error}");
    for bad in ["line 2: no limit", "line 4: \"b@x.org\" is not a key", "line 5: user:a is one key"] {
        assert!(text.contains(bad), "{bad}: {text}");
    }
    assert!(text.contains("1/key/account:k2.") && text.ends_with("2 keys read, 4 with something in force\n"), "{text}");
    assert!(rotation.check().0, "both were carried");
    let bad = json(&rotation.tool(Some(&both()), &["carry", "-", "--json"], list));
    assert_eq!((&bad["keys"], &bad["bad_lines"][0]["line"]), (&2.into(), &2.into()));
}

/// An address of this machine can be a tunnel to any table.
#[test]
fn the_development_secret_is_for_tables_of_a_server_that_has_it() {
    let rotation = Rotation::start();
    for command in ["ban", "allow", "inspect", "reset", "forget"] {
        let output = rotation.tool(None, &[command, "account:a@x.org"], "");
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{command}: {}", stderr(&output));
        assert!(stderr(&output).contains("set TOLLGATE_KEY_SECRETS to the text that they have"), "{}", stderr(&output));
    }
    assert_eq!(rotation.does(OLD, &["holds"])["holds"], json!([]), "nothing was written");
    assert!(rotation.tool(None, &["ban", "user:alice"], "").status.success(), "what is not personal needs no secret");
}

#[test]
fn no_personal_value_gets_into_the_table_by_the_letter() {
    let rotation = Rotation::start();
    for args in [&["ban"][..], &["override", "--limit", "mails", "--rate", "1/h", "--for", "1h"]] {
        let output = rotation.tool(Some(OLD), &[args, &["account:a@x.org", "--literal-key"]].concat(), "");
        assert!(
            output.status.code() == Some(1) && stderr(&output).contains("`account` is personal"),
            "{}",
            stderr(&output)
        );
    }
    assert_eq!(rotation.does(OLD, &["holds"])["holds"], json!([]));
}

/// Operators who knew of one secret each have set different things.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_on_one_item_of_a_caller_joins_what_is_set_on_the_other() {
    let client = Client::new().await;
    let store = client.limiter.store();
    let both = [key(), key()];
    let until = |secs| client.clock_now() + Duration::from_secs(secs);
    let figures = |n, secs| Override { figures: (bucket(n, SECOND, n)).into(), until: until(secs) };
    let name = |name: &str| LimitName::new(name).unwrap();
    for (item, order) in [
        (0, Order::Ban(until(60))),
        (0, Order::Override(name("one"), figures(1, 100))),
        (1, Order::Ban(until(600))),
        (1, Order::Override(name("one"), figures(2, 200))),
        (1, Order::Override(name("two"), figures(3, 300))),
    ] {
        admin::order(store, &both[item..=item], &order).await.unwrap();
    }
    let ordered = admin::order(store, &both, &Order::Keep).await.unwrap();
    let hold = ordered.after.unwrap();
    let overrides = [(name("one"), figures(1, 100)), (name("two"), figures(3, 300))].into();
    assert_eq!((hold.banned_until, &hold.overrides), (Some(until(600)), &overrides), "the newer secret's figures");
    for item in &both {
        assert_eq!(store.read(item, &[]).await.unwrap().unwrap().hold.as_ref(), Some(&hold));
    }
    let before = client.counts().write_units;
    admin::order(store, &both, &Order::Keep).await.unwrap();
    assert_eq!(client.counts().write_units, before, "what is the same already is not written");
}

/// Both items of a caller, while operators who know of one or both set and lift at once.
#[tokio::test(flavor = "multi_thread")]
async fn operators_at_once_leave_both_items_of_a_caller_with_one_hold() {
    let client = Client::new().await;
    let store = client.limiter.store();
    for round in 0..10 {
        let both = [key(), key()];
        let until = client.clock_now() + Duration::from_secs(600 + round);
        let figures = Override { figures: (bucket(9, SECOND, 9)).into(), until };
        let set = Order::Override(LimitName::new("limit").unwrap(), figures);
        admin::order(store, &both[1..], &set).await.unwrap();
        let (keep, ban, lift) = (Order::Keep, Order::Ban(until), Order::Allow(None));
        let order = |order| admin::order(store, &both, order);
        let (kept, banned, lifted, again) = tokio::join!(order(&keep), order(&ban), order(&lift), order(&keep));
        for done in [kept, banned, lifted, again] {
            done.unwrap();
        }
        let mut holds: Vec<Option<Hold>> = Vec::new();
        for item in &both {
            holds.push(store.read(item, &[]).await.unwrap().and_then(|item| item.hold));
        }
        assert_eq!(holds[0], holds[1], "nothing that was lifted comes back on one of them");
    }
}
