//! An errand as it lies in a queue: sealed, since it has a code and a number in it.
//!
//! `KID.` and, in base64url, a random salt of 128 bits and the errand under ChaCha20-Poly1305 (RFC 8439). The key is HMAC-SHA-256 of the salt
//! under the secret of that name, so each is used for one message. Where it goes is judged anew by the policy in force when it
//! is opened.
//!
//! Invariant: nobody without the secrets can read, change or make one.

use crate::challenge::ChallengeId;
use crate::code::Code;
use crate::courier::{Errand, Message, Notice};
use crate::delivery::Receipt;
use crate::destination::Destination;
use crate::error::{Error, Result};
use crate::pumping::{Credit, Window};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tollgate_policy::{Channel, KeySecrets, OtpRules, Policy};
use zeroize::{Zeroize, Zeroizing};

/// What keys are made for; nobody else signs under that name.
const SIGNED: &[u8] = b"one-time code errand 1";

const SALT: usize = 16;

#[derive(Serialize, Deserialize)]
enum Written<'a> {
    #[serde(rename = "deliver", borrow)]
    Deliver(Letter<'a>),
    #[serde(rename = "notify")]
    Notify {
        #[serde(borrow)]
        to: (Cow<'a, str>, Cow<'a, str>),
        text: Cow<'a, str>,
        subject: Cow<'a, str>,
    },
    #[serde(rename = "arrived")]
    Verified {
        receipt: Option<Cow<'a, str>>,
        /// Window, country and block; what was sealed before there were credits has none.
        #[serde(default, borrow)]
        credit: Option<(u64, Cow<'a, str>, Cow<'a, str>)>,
    },
}

#[derive(Serialize, Deserialize)]
struct Letter<'a> {
    #[serde(borrow)]
    to: Option<(Cow<'a, str>, Cow<'a, str>)>,
    code: Cow<'a, str>,
    purpose: Cow<'a, str>,
    text: Cow<'a, str>,
    subject: Cow<'a, str>,
    challenge: Cow<'a, str>,
    item: Cow<'a, str>,
}

impl Errand {
    /// The errand as text that only whoever has the secrets can read.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] without secrets, [`Error::NoRandomness`].
    pub fn seal(&self, secrets: &KeySecrets) -> Result<String> {
        seal(self.written()?, secrets)
    }

    /// What `text` was sealed of.
    ///
    /// # Errors
    ///
    /// [`Error::Sealed`]; [`Error::Policy`] if the policy has no such purpose any more.
    pub fn open(text: &str, policy: &Policy) -> Result<Self> {
        let (kid, encoded) = text.split_once('.').ok_or(Error::Sealed("it has no name of a secret"))?;
        let mut sealed = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| Error::Sealed("it is not base64"))?;
        let (salt, written) = sealed.split_at_mut_checked(SALT).ok_or(Error::Sealed("it is too short"))?;
        let key = policy.secrets().sign_under(kid, &[SIGNED, salt]).ok_or(Error::Sealed("its secret is not here"))?;
        let opened = cipher(key)?.open_in_place(nonce(), Aad::from(kid.as_bytes()), written);
        let opened = opened.map_err(|_| Error::Sealed("it was not sealed under that secret"))?;
        let errand = serde_json::from_slice(opened).map_err(|_| Error::Sealed("another version wrote it"));
        let errand = errand.and_then(|written| Self::read(written, policy));
        sealed.zeroize();
        errand
    }

    fn written(&self) -> Result<Zeroizing<Vec<u8>>> {
        let written = match self {
            Self::Verified { receipt, credit } => Written::Verified {
                receipt: receipt.as_ref().map(|receipt| receipt.as_str().into()),
                credit: credit.as_ref().map(|Credit { window, country, block }| {
                    (window.0, country.as_str().into(), block.as_str().into())
                }),
            },
            Self::Deliver(message) => Written::Deliver(Letter::of(message)),
            Self::Notify(notice) => Written::Notify {
                to: (notice.to.channel().as_str().into(), notice.to.address().into()),
                text: notice.text.as_str().into(),
                subject: notice.subject.as_str().into(),
            },
        };
        serde_json::to_vec(&written).map(Zeroizing::new).map_err(|_| Error::Sealed("it cannot be written"))
    }

    fn read(written: Written<'_>, policy: &Policy) -> Result<Self> {
        match written {
            Written::Deliver(letter) => letter.read(policy).map(|message| Self::Deliver(Box::new(message))),
            Written::Notify { to: (channel, address), text, subject } => {
                let rules = policy.otp().ok_or(tollgate_policy::Error::NoOtp)?;
                let to =
                    destination(&channel, &address, rules).ok_or(Error::Sealed("nothing is sent there any more"))?;
                let text = Zeroizing::new(text.into_owned());
                Ok(Self::Notify(Box::new(Notice { to, text, subject: subject.into_owned() })))
            }
            Written::Verified { receipt, credit } => {
                let credit = credit.map(|(window, country, block)| Credit {
                    window: Window(window),
                    country: country.into_owned(),
                    block: block.into_owned(),
                });
                Ok(Self::Verified { receipt: receipt.map(Receipt::new), credit })
            }
        }
    }
}

impl<'a> Letter<'a> {
    fn of(message: &'a Message) -> Self {
        Self {
            to: message.to.as_ref().map(|to| (to.channel().as_str().into(), to.address().into())),
            code: message.code.digits().into(),
            purpose: message.purpose.as_str().into(),
            text: message.text.as_str().into(),
            subject: message.subject.as_str().into(),
            challenge: message.challenge.to_string().into(),
            item: message.item.as_str().into(),
        }
    }

    fn read(self, policy: &Policy) -> Result<Message> {
        let Self { to, code, purpose, text, subject, challenge, item } = self;
        let (rules, purpose) = policy.otp_for(&purpose)?;
        let to = to.and_then(|(channel, address)| destination(&channel, &address, rules));
        let code = Code::parse(&code, rules.digits)?;
        let challenge: ChallengeId = challenge.parse().map_err(|_| Error::Sealed("another version wrote it"))?;
        let (text, subject, item) = (Zeroizing::new(text.into_owned()), subject.into_owned(), item.into_owned());
        Ok(Message { to, code, purpose: purpose.clone(), text, subject, challenge, item })
    }
}

/// Where something goes, judged anew.
fn destination(channel: &str, address: &str, rules: &OtpRules) -> Option<Destination> {
    let channel = Channel::ALL.into_iter().find(|known| known.as_str() == channel)?;
    let found = if address.contains('@') {
        Destination::email(address, channel)
    } else {
        Destination::phone(address, channel, rules)
    };
    found.inspect_err(|refusal| tracing::info!(%refusal, "nothing is sent there any more")).ok()
}

/// What is written of an errand, as text that only whoever has the secrets can read.
fn seal(mut text: Zeroizing<Vec<u8>>, secrets: &KeySecrets) -> Result<String> {
    let mut sealed = vec![0; SALT];
    crate::random(&mut sealed)?;
    let (kid, key) = secrets.sign(&[SIGNED, &sealed]).ok_or_else(crate::otp::no_secrets)?;
    let aad = Aad::from(kid.as_bytes());
    let tag = cipher(key)?.seal_in_place_separate_tag(nonce(), aad, &mut text);
    let tag = tag.map_err(|_| Error::Sealed("it is too long"))?;
    sealed.extend_from_slice(&text);
    sealed.extend_from_slice(tag.as_ref());
    Ok(format!("{kid}.{}", URL_SAFE_NO_PAD.encode(sealed)))
}

/// The cipher under a key that no other message has.
fn cipher(mut key: [u8; 32]) -> Result<LessSafeKey> {
    let cipher = UnboundKey::new(&CHACHA20_POLY1305, &key).map(LessSafeKey::new);
    key.zeroize();
    cipher.map_err(|_| Error::Sealed("its key has another length"))
}

/// The only one under a key.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::challenge::Recipient;
    use crate::otp::Issued;
    use std::time::Duration;
    use tollgate_core::Timestamp;

    const OLD: &str = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
    const NEW: &str = "k2=__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA";

    const START: Timestamp = Timestamp::from_secs(1_767_225_600);

    fn policy(secrets: &str, countries: &str) -> Policy {
        let text = format!("version = 1\n[otp]\npurposes = ['login']\ncountries = [{countries}]\n");
        Policy::parse(&text).unwrap().policy.with_secrets(secrets.parse().unwrap())
    }

    fn message(policy: &Policy) -> Message {
        let (rules, purpose) = policy.otp_for("login").unwrap();
        let recipient = Recipient::new("user:alice".parse().unwrap(), purpose.clone(), "+40721234567").unwrap();
        let issued = Issued {
            challenge: ChallengeId::new([1; 16]),
            code: Code::parse("012345", 6).unwrap(),
            made_at: START,
            expires_in: Duration::from_secs(300),
            resend_after: Duration::from_secs(60),
        };
        let to = Destination::phone("+40721234567", Channel::Sms, rules).unwrap();
        Message::new(rules, Some(to), &recipient, &issued, &[])
    }

    fn opened(text: &str, policy: &Policy) -> Message {
        match Errand::open(text, policy).unwrap() {
            Errand::Deliver(message) => *message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_sealed_is_opened_as_it_was() {
        let policy = policy(OLD, "'RO'");
        let message = message(&policy);
        let found = opened(&Errand::Deliver(Box::new(message.clone())).seal(policy.secrets()).unwrap(), &policy);
        assert_eq!((&found.to, found.code.digits(), &found.purpose), (&message.to, "012345", &message.purpose));
        assert_eq!((found.text, found.subject), (message.text, message.subject));
        assert_eq!((found.challenge, found.item.as_str()), (message.challenge, "1/otp/login/user:alice"));
        let (receipt, credit) = (Receipt::new("abc"), Credit::of(&message.to.unwrap(), START));
        for (receipt, credit) in
            [(Some(receipt.clone()), None), (None, Some(credit.clone())), (Some(receipt), Some(credit))]
        {
            let sealed = Errand::Verified { receipt: receipt.clone(), credit: credit.clone() };
            let found = Errand::open(&sealed.seal(policy.secrets()).unwrap(), &policy).unwrap();
            let Errand::Verified { receipt: found, credit: given } = found else { panic!("{found:?}") };
            assert_eq!((found, given), (receipt, credit));
        }
    }

    #[test]
    fn a_notice_is_opened_as_it_was_and_nothing_of_it_can_be_read() {
        let policy = policy(OLD, "'RO'");
        let to = Destination::phone("+40721234567", Channel::Sms, policy.otp().unwrap()).unwrap();
        let text = Zeroizing::new("cancel: https://x.org/#secret".to_owned());
        let notice = Notice { to: to.clone(), text, subject: "changed".to_owned() };
        let sealed = Errand::Notify(Box::new(notice)).seal(policy.secrets()).unwrap();
        let Errand::Notify(found) = Errand::open(&sealed, &policy).unwrap() else { panic!("another errand") };
        let of = (found.to.clone(), found.text.as_str(), found.subject.as_str());
        assert_eq!(of, (to, "cancel: https://x.org/#secret", "changed"));
        let bytes = URL_SAFE_NO_PAD.decode(sealed.split_once('.').unwrap().1).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("secret") && !format!("{found:?}").contains("secret"));
    }

    #[test]
    fn what_was_sealed_before_there_were_credits_is_opened() {
        let policy = policy(OLD, "'RO'");
        let written = br#"{"arrived":{"receipt":"abc"}}"#.to_vec();
        let found = Errand::open(&seal(Zeroizing::new(written), policy.secrets()).unwrap(), &policy).unwrap();
        let Errand::Verified { receipt, credit } = found else { panic!("{found:?}") };
        assert_eq!((receipt, credit), (Some(Receipt::new("abc")), None));
    }

    #[test]
    fn nothing_of_an_errand_can_be_read_and_no_two_are_alike() {
        let policy = policy(OLD, "'RO'");
        let errand = Errand::Deliver(Box::new(message(&policy)));
        let (one, other) = (errand.seal(policy.secrets()).unwrap(), errand.seal(policy.secrets()).unwrap());
        assert_ne!(one, other);
        let credit = Credit::of(&message(&policy).to.unwrap(), START);
        let verified = Errand::Verified { receipt: Some(Receipt::new("receipt")), credit: Some(credit) };
        let verified = verified.seal(policy.secrets()).unwrap();
        for sealed in [one, verified] {
            let bytes = URL_SAFE_NO_PAD.decode(sealed.split_once('.').unwrap().1).unwrap();
            let shown = String::from_utf8_lossy(&bytes);
            for secret in ["012345", "721234567", "4072123", "alice", "login", "receipt"] {
                assert!(!sealed.contains(secret) && !shown.contains(secret), "{secret}");
            }
        }
    }

    #[test]
    fn what_was_changed_or_sealed_by_another_is_not_opened() {
        let policy = policy(OLD, "'RO'");
        let sealed = Errand::Deliver(Box::new(message(&policy))).seal(policy.secrets()).unwrap();
        for at in (3..sealed.len()).step_by(7) {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(Errand::open(&String::from_utf8(changed).unwrap(), &policy).is_err(), "{at}");
        }
        for wrong in ["", "k1", "k1.", "k1.AAAA", &sealed[..sealed.len() - 4], &format!("k2{}", &sealed[2..])] {
            assert!(matches!(Errand::open(wrong, &policy), Err(Error::Sealed(_))), "{wrong}");
        }
    }

    #[test]
    fn what_was_sealed_under_a_secret_that_is_being_retired_is_opened() {
        let (old, both) = (policy(OLD, "'RO'"), policy(&format!("{NEW},{OLD}"), "'RO'"));
        let sealed = Errand::Deliver(Box::new(message(&old))).seal(old.secrets()).unwrap();
        assert_eq!(opened(&sealed, &both).code.digits(), "012345");
        assert!(matches!(Errand::open(&sealed, &policy(NEW, "'RO'")), Err(Error::Sealed("its secret is not here"))));
    }

    #[test]
    fn a_country_that_is_allowed_no_longer_gets_nothing_that_was_queued() {
        let before = policy(OLD, "'RO'");
        let sealed = Errand::Deliver(Box::new(message(&before))).seal(before.secrets()).unwrap();
        assert_eq!(opened(&sealed, &policy(OLD, "'VN'")).to, None);
    }
}
