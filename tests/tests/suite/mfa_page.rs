//! The page of second factors (`/mfa`), driven in a browser as a person does.

use crate::browser::{Browser, Page, Scheme, keep};
use crate::dev::Dev;
use crate::harness::repository;
use totp_rs::Totp;

/// A server, and a person at its page.
struct Visit<'v> {
    dev: &'v Dev,
    page: Page<'v>,
}

impl<'v> Visit<'v> {
    fn to(dev: &'v Dev, browser: &'v mut Browser) -> Self {
        let page = browser.open(&dev.local("/mfa"));
        Self { dev, page }
    }

    /// A sign-in of its own, which has proved one factor.
    fn signs_in(&mut self) {
        self.page.click("#sign-in button");
        self.page.wait_for_text("#status", "alice has signed in");
        // Each has its own session.
        self.page.eval("document.querySelector('#status').textContent = ''");
    }

    /// What the app shows in the next step.
    fn next_code(&self, app: &Totp) -> String {
        self.dev.advance_ms(30_000);
        app.generate(self.dev.stats()["now_ms"].as_u64().unwrap() / 1000).to_string()
    }

    fn enrols(&mut self) -> Totp {
        self.page.click("#enrol");
        self.page.wait_for_text("#uri", "otpauth://totp/");
        let app = Totp::from_url(self.page.text("#uri")).unwrap();
        self.page.wait("document.querySelector('#qr').naturalWidth > 0");
        let code = self.next_code(&app);
        self.page.type_into("#confirm-code", &code);
        self.page.click("#confirm button");
        self.page.wait_for_text("#status", "set up");
        app
    }

    fn makes_codes(&mut self) -> Vec<String> {
        self.page.click("#generate");
        self.page.wait_for_text("#status", "Ten codes");
        let codes = self.page.eval("[...document.querySelectorAll('#codes li')].map((it) => it.textContent)");
        serde_json::from_value(codes).unwrap()
    }

    /// Asks for another payout account, and is asked who he is.
    fn is_challenged(&mut self) {
        self.page.click("#payout button");
        self.page.wait("document.querySelector('#step-up').open");
        let why = self.page.text("#step-up-why");
        assert!(why.contains("class “mfa”") && why.contains("no older than 5 min"), "{why}");
        let said = self.page.text("#said li");
        assert!(said.contains("401") && said.contains("insufficient_user_authentication"), "{said}");
    }

    fn chooses(&mut self, factor: &str) {
        self.page.eval(&format!(
            "{{ const it = document.querySelector('#step-up-factor'); it.value = '{factor}'; it.dispatchEvent(new Event('change')); }}"
        ));
    }

    fn proves(&mut self, factor: &str, code: &str) {
        self.chooses(factor);
        self.page.type_into("#step-up-code", code);
        self.page.press("Enter");
    }

    fn has_changed_it(&mut self) {
        self.page.wait_for_text("#payout-result", "200");
        assert_eq!(self.page.eval("document.querySelector('#step-up').open"), false);
    }
}

#[test]
fn a_person_enrols_an_app_steps_up_by_it_and_uses_a_recovery_code_once() {
    let dev = Dev::start(&["--clock", "manual"]);
    let Some(mut browser) = Browser::start() else { return };
    let mut alice = Visit::to(&dev, &mut browser);
    alice.signs_in();
    let app = alice.enrols();
    alice.page.wait_for_text("#factors", "Authenticator app");

    alice.signs_in();
    alice.is_challenged();
    alice.proves("totp", "000000");
    alice.page.wait_for_text("#step-up-refused", "401");
    let code = alice.next_code(&app);
    alice.proves("totp", &code);
    alice.has_changed_it();
    let codes = alice.makes_codes();
    assert_eq!(codes.len(), 10);

    // They were added beside the app, and prove nothing for a day.
    alice.signs_in();
    alice.is_challenged();
    alice.proves("recovery", &codes[0]);
    alice.page.wait_for_text("#step-up-refused", "added of late");
    alice.page.press("Escape");
    dev.advance_ms(86_402_000);

    alice.signs_in();
    assert_eq!(alice.page.text("#codes"), "", "they are shown once");
    alice.is_challenged();
    alice.proves("recovery", &codes[0]);
    alice.has_changed_it();
    alice.page.wait_for_text("#factors", "9 left");

    alice.signs_in();
    alice.is_challenged();
    alice.proves("recovery", &codes[0]);
    alice.page.wait_for_text("#step-up-refused", "401");
    alice.page.press("Escape");
    alice.page.wait_for_text("#payout-result", "401");

    alice.page.click("[data-remove=totp]");
    alice.page.wait("document.querySelector('#step-up').open");
    alice.proves("recovery", &codes[1]);
    alice.page.wait_for_text("#status", "Authenticator app: removed");
    assert!(!alice.page.text("#factors").contains("Authenticator app"));
}

#[test]
fn a_person_adds_a_passkey_steps_up_by_touching_it_and_removes_it() {
    let dev = Dev::start(&["--clock", "manual"]);
    let Some(mut browser) = Browser::start() else { return };
    let mut alice = Visit::to(&dev, &mut browser);
    alice.page.add_authenticator();
    alice.signs_in();
    alice.page.wait_for_text("#passkeys", "nothing to phish");
    alice.page.click("#add-passkey");
    alice.page.wait_for_text("#status", "The passkey is added");
    alice.page.wait_for_text("#factors", "Passkey");

    alice.signs_in();
    alice.is_challenged();
    alice.chooses("passkey");
    alice.page.click("#step-up-form button");
    alice.has_changed_it();

    // For this one removal, in a session that has proved nothing else.
    alice.signs_in();
    alice.page.click("[data-remove=passkey]");
    alice.page.wait("document.querySelector('#step-up').open");
    alice.chooses("passkey");
    alice.page.click("#step-up-form button");
    alice.page.wait_for_text("#status", "Passkey: removed");
    assert!(!alice.page.text("#factors").contains("Passkey"));
}

#[test]
fn a_server_without_passkeys_says_so() {
    let sample = std::fs::read_to_string(repository("infra/tollgate.toml")).unwrap();
    let from = sample.find("[mfa.passkeys]").unwrap();
    let to = from + sample[from..].find("\n\n").unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), sample.replace(&sample[from..to], "")).unwrap();
    let dev = Dev::start(&["--clock", "manual", "--policy", file.path().to_str().unwrap()]);
    let Some(mut browser) = Browser::start() else { return };
    let mut alice = Visit::to(&dev, &mut browser);
    alice.signs_in();
    alice.page.wait_for_text("#passkeys", "Passkeys are off");
    assert_eq!(alice.page.eval("document.querySelector('#add-passkey').disabled"), true);
}

#[test]
fn it_fits_every_screen() {
    let dev = Dev::start(&["--clock", "manual"]);
    let Some(mut browser) = Browser::start() else { return };
    let mut alice = Visit::to(&dev, &mut browser);
    alice.signs_in();
    alice.enrols();
    alice.makes_codes();
    alice.signs_in();
    alice.is_challenged();
    alice.page.eval("scrollTo(0, 0)");
    for (width, height, scheme, name) in [
        (1280, 900, Scheme::Light, "mfa-light.webp"),
        (1280, 900, Scheme::Dark, "mfa-dark.webp"),
        (390, 844, Scheme::Light, "mfa-phone.webp"),
    ] {
        alice.page.show_on(width, height, scheme);
        assert_eq!(alice.page.overflow(), 0, "{name}");
        keep(name, &alice.page.picture());
    }
}
