//! A headless Chromium, told what to do in its own protocol (CDP) over a pipe: JSON, each message with a NUL at its end.
//!
//! Invariants: one browser at a time, since the machine has few cores; a page that complains (an exception, something that its
//! content security policy forbids) fails the test.

mod page;
mod pipe;

pub use page::{Page, Scheme};

use pipe::Pipe;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// Where Chromium is, if not by one of its [`NAMES`] in `PATH`.
const VARIABLE: &str = "TOLLGATE_CHROMIUM";
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/// What keeps a browser to itself: no first run, no services of its maker, no sandbox of its own (root has none, and what is opened
/// here is ours).
const ARGUMENTS: [&str; 10] = [
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
];

/// A running browser.
pub struct Browser {
    child: Child,
    pipe: Pipe,
    _profile: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Browser {
    /// Starts one; `None`, and a word, if none is installed.
    pub fn start() -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        let Some(program) = program() else {
            println!("skipped: there is no Chromium in PATH, and {VARIABLE} names none");
            return None;
        };
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let profile = tempfile::tempdir().unwrap();
        // It reads commands from descriptor 3 and answers on 4, which std gives no child.
        let mut command = Command::new("sh");
        command.args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#]).arg(program).args(ARGUMENTS);
        command.arg(format!("--user-data-dir={}", profile.path().display())).env("HOME", profile.path());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a shell");
        let pipe = Pipe::new(child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Some(Self { child, pipe, _profile: profile, _alone: alone })
    }

    /// Opens an address in a page of its own.
    pub fn open(&mut self, url: &str) -> Page<'_> {
        let target = self.pipe.ask(None, "Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.pipe.ask(None, "Target.attachToTarget", &attached)["sessionId"].clone();
        let mut page = Page::new(&mut self.pipe, session.as_str().unwrap());
        for domain in ["Page", "Runtime", "Log"] {
            page.command(&format!("{domain}.enable"), &Value::Null);
        }
        page.go(url);
        page
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its own end takes its children along; it has none that outlive its pipe.
        self.pipe.tell(None, "Browser.close", &Value::Null);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    NAMES.iter().find_map(|name| std::env::split_paths(&path).map(|dir| dir.join(name)).find(|at| at.is_file()))
}

/// Keeps a picture, where `TOLLGATE_SCREENSHOTS` names a directory for them, and checks that it is fit for a README.
pub fn keep(name: &str, picture: &[u8]) {
    const MOST: usize = 150_000;
    assert!(!picture.is_empty() && picture.len() < MOST, "{name}: {} bytes", picture.len());
    if let Some(directory) = std::env::var_os("TOLLGATE_SCREENSHOTS") {
        std::fs::write(Path::new(&directory).join(name), picture).unwrap();
    }
}

#[test]
fn the_browser_that_pages_are_tested_with_has_an_authenticator_that_makes_passkeys() {
    let dev = crate::dev::Dev::start(&[]);
    let Some(mut browser) = Browser::start() else { return };
    let mut page = browser.open(&dev.local("/mfa"));
    page.add_authenticator();
    let made = page.eval(
        "navigator.credentials.create({ publicKey: {
            challenge: new Uint8Array(32), rp: { name: 'x' }, user: { id: new Uint8Array(16), name: 'a', displayName: 'a' },
            pubKeyCredParams: [{ type: 'public-key', alg: -7 }] } }).then((made) => made.toJSON())",
    );
    assert_eq!(made["type"], "public-key", "{made}");
    assert!(made["response"]["attestationObject"].is_string(), "{made}");
}
