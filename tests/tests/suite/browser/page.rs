//! A page: what a person does in it, and what he sees.
//!
//! Invariant: nothing here waits for a time; it waits until something is seen.

use super::pipe::Pipe;
use crate::harness::PATIENCE;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How often is looked whether something is seen.
const LOOK: Duration = Duration::from_millis(20);

/// What a person prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Light,
    Dark,
}

/// An open page.
pub struct Page<'b> {
    pipe: &'b mut Pipe,
    session: String,
}

impl<'b> Page<'b> {
    pub(super) fn new(pipe: &'b mut Pipe, session: &str) -> Self {
        Self { pipe, session: session.to_owned() }
    }

    /// A command of the protocol to this page.
    pub fn command(&mut self, method: &str, params: &Value) -> Value {
        self.pipe.ask(Some(&self.session), method, params)
    }

    /// Goes to an address and waits until the page is there.
    pub fn go(&mut self, url: &str) {
        let gone = self.command("Page.navigate", &json!({ "url": url }));
        assert!(gone["errorText"].is_null(), "{url}: {gone}");
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// The value of an expression, of a promise what it comes to.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut result = self.command("Runtime.evaluate", &params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) {
        let began = Instant::now();
        while self.eval(&format!("Boolean({expression})")) != true {
            if began.elapsed() > PATIENCE {
                let complaints = self.pipe.take_complaints();
                panic!("never: {expression}\n{complaints:?}\n{}", self.eval("document.body.innerText"));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The text of the element that a selector names.
    pub fn text(&mut self, selector: &str) -> String {
        let text = self.eval(&format!("document.querySelector({})?.innerText", json!(selector)));
        text.as_str().unwrap_or_else(|| panic!("there is no {selector}")).to_owned()
    }

    /// Waits until the text of the element has `part`.
    pub fn wait_for_text(&mut self, selector: &str, part: &str) {
        self.wait(&format!("document.querySelector({})?.innerText.includes({})", json!(selector), json!(part)));
    }

    /// Presses a button as soon as it can be pressed.
    pub fn click(&mut self, selector: &str) {
        let selector = json!(selector);
        self.wait(&format!(
            "(() => {{ const it = document.querySelector({selector}); return it && !it.disabled && it.checkVisibility(); }})()"
        ));
        self.eval(&format!("document.querySelector({selector}).click()"));
    }

    /// Types into an empty field.
    pub fn type_into(&mut self, selector: &str, text: &str) {
        let selector = json!(selector);
        self.wait(&format!("document.querySelector({selector})?.checkVisibility()"));
        self.eval(&format!("{{ const it = document.querySelector({selector}); it.focus(); it.value = ''; }}"));
        self.command("Input.insertText", &json!({ "text": text }));
    }

    /// Presses a key: `Tab`, `Enter`, ...
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            other => panic!("{other}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut params = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && !text.is_empty() {
                params["text"] = text.into();
            }
            self.command("Input.dispatchKeyEvent", &params);
        }
    }

    /// Shows the page on a screen of so many pixels, to a person who prefers a scheme.
    pub fn show_on(&mut self, width: u32, height: u32, scheme: Scheme) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.command("Emulation.setDeviceMetricsOverride", &metrics);
        let value = if scheme == Scheme::Dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.command("Emulation.setEmulatedMedia", &media);
    }

    /// By how many pixels the page is wider than the screen.
    pub fn overflow(&mut self) -> i64 {
        self.eval("document.documentElement.scrollWidth - document.documentElement.clientWidth").as_i64().unwrap()
    }

    /// What is on the screen, as WebP.
    pub fn picture(&mut self) -> Vec<u8> {
        let format = json!({ "format": "webp", "quality": 82 });
        let picture = self.command("Page.captureScreenshot", &format);
        STANDARD.decode(picture["data"].as_str().unwrap()).unwrap()
    }

    /// Gives the browser an authenticator that has its person touch it at once.
    pub fn add_authenticator(&mut self) {
        self.command("WebAuthn.enable", &json!({ "enableUI": false }));
        let options = json!({
            "protocol": "ctap2", "transport": "internal", "hasResidentKey": true, "hasUserVerification": true,
            "isUserVerified": true, "automaticPresenceSimulation": true,
        });
        self.command("WebAuthn.addVirtualAuthenticator", &json!({ "options": options }));
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        let complaints = self.pipe.take_complaints();
        assert!(complaints.is_empty() || std::thread::panicking(), "the page complains: {complaints:#?}");
    }
}
