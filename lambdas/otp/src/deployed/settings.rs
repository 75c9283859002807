//! The environment variables of the two functions, beside those that all functions have.
//!
//! Invariant: a message names the variable and what to give it.

use tollgate::lambda::InitError;
use tollgate::source::{PolicySource, Reader, ReaderOptions};
use tollgate_otp::Captcha;
use tollgate_otp::WafCaptcha;
use tollgate_otp_aws::Turnstile;
use tollgate_otp_aws::email::EmailOptions;
use tollgate_otp_aws::sms::SmsOptions;
use tollgate_otp_aws::turnstile::SITEVERIFY;

/// Of the function that answers.
///
/// | variable | value | default |
/// | --- | --- | --- |
/// | `TOLLGATE_OTP_QUEUE_URL` | the queue of messages | required |
/// | `TOLLGATE_USER_POOL_ID` | the Cognito user pool with the profiles | required |
/// | `TOLLGATE_TURNSTILE_SECRET` | where the secret key of Cloudflare Turnstile is, like `ssm:/tollgate/turnstile` or `secretsmanager:NAME` | Turnstile is not asked |
/// | `TOLLGATE_TURNSTILE_URL` | where its tokens are judged | Cloudflare's address |
/// | `TOLLGATE_WAF_CAPTCHA_SECRET` | where the value is that a rule of AWS WAF inserts as `x-amzn-waf-captcha`, likewise | such a header is not looked at |
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) queue_url: String,
    pub(super) user_pool: String,
    pub(super) captcha: Option<Box<dyn Captcha>>,
}

impl Settings {
    pub(super) async fn from_environment() -> Result<Self, InitError> {
        let missing = |name, give| InitError::Missing { name, give };
        let (queue, pool) = ("TOLLGATE_OTP_QUEUE_URL", "TOLLGATE_USER_POOL_ID");
        let queue_url = value(queue).ok_or_else(|| missing(queue, "the URL of the queue that messages go through"))?;
        let user_pool =
            value(pool).ok_or_else(|| missing(pool, "the id of the user pool that has the verified numbers"))?;
        Ok(Self { queue_url, user_pool, captcha: captcha().await? })
    }
}

/// Of the function that delivers.
///
/// | variable | value | default |
/// | --- | --- | --- |
/// | `TOLLGATE_SMS_ORIGINATION_IDENTITY` | the number, sender id or pool that text messages come from | none are sent |
/// | `TOLLGATE_SMS_CONFIGURATION_SET` | the configuration set of text messages | none |
/// | `TOLLGATE_SMS_PROTECT_CONFIGURATION` | the id of the protect configuration | the account's |
/// | `TOLLGATE_EMAIL_FROM` | the identity that email comes from | no email is sent |
/// | `TOLLGATE_EMAIL_CONFIGURATION_SET` | the configuration set of email | none |
/// | `TOLLGATE_EVENT_BUS` | the bus that events go to | none go out |
#[derive(Debug)]
pub(super) struct Channels {
    pub(super) sms: Option<SmsOptions>,
    pub(super) email: Option<EmailOptions>,
    pub(super) event_bus: Option<String>,
}

impl Channels {
    pub(super) fn from_environment() -> Self {
        let sms = value("TOLLGATE_SMS_ORIGINATION_IDENTITY").map(|origin| {
            let mut sms = SmsOptions::from(origin);
            sms.configuration_set = value("TOLLGATE_SMS_CONFIGURATION_SET");
            sms.protect_configuration = value("TOLLGATE_SMS_PROTECT_CONFIGURATION");
            sms
        });
        let email = value("TOLLGATE_EMAIL_FROM").map(|from| {
            let mut email = EmailOptions::from(from);
            email.configuration_set = value("TOLLGATE_EMAIL_CONFIGURATION_SET");
            email
        });
        Self { sms, email, event_bus: value("TOLLGATE_EVENT_BUS") }
    }
}

/// One judge at most: two would be two ways past.
async fn captcha() -> Result<Option<Box<dyn Captcha>>, InitError> {
    let turnstile = secret("TOLLGATE_TURNSTILE_SECRET").await?;
    let waf = secret("TOLLGATE_WAF_CAPTCHA_SECRET").await?;
    Ok(match (turnstile, waf) {
        (None, None) => None,
        (Some(secret), None) => {
            let url = value("TOLLGATE_TURNSTILE_URL").unwrap_or_else(|| SITEVERIFY.to_owned());
            Some(Box::new(Turnstile::new(url, &secret)))
        }
        (None, Some(value)) => Some(Box::new(WafCaptcha::new(&value))),
        (Some(_), Some(_)) => {
            let (name, give) =
                ("TOLLGATE_WAF_CAPTCHA_SECRET", "nothing, or TOLLGATE_TURNSTILE_SECRET nothing".to_owned());
            return Err(InitError::Invalid { name, value: "a second judge".to_owned(), give });
        }
    })
}

/// The text in the place that a variable names; `None` if it names none.
async fn secret(name: &'static str) -> Result<Option<String>, InitError> {
    let Some(place) = value(name) else { return Ok(None) };
    let read = async {
        let place: PolicySource = place.parse()?;
        Reader::open(place, &ReaderOptions::default()).await?.load().await
    };
    let text = read.await.map_err(|cause| InitError::Secret { name, cause: Box::new(cause) })?.text.unwrap_or_default();
    match text.trim() {
        "" => Err(InitError::Missing { name, give: "a place that has a secret in it" }),
        text => Ok(Some(text.to_owned())),
    }
}

/// A variable; one that is set to nothing counts as not set.
fn value(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
