//! The functions as they are deployed: one that answers, and one that delivers what the first has queued.
//!
//! Each has the permissions of its own part only: the first knows who has which number and can send nothing, the second sends and knows
//! nobody.

pub mod courier;
mod settings;

use crate::Service;
use lambda_http::{Error, Request};
use settings::Settings;
use std::process::ExitCode;
use std::sync::Arc;
use tollgate::http::event;
use tollgate::lambda::Function;
use tollgate_dynamodb::Items;
use tollgate_otp::Otp;
use tollgate_otp_aws::{Cognito, Queue, config};

/// Runs the function that answers until its sandbox ends.
pub fn main() -> ExitCode {
    tollgate::lambda::main(serve)
}

async fn serve(function: Function) -> Result<(), Error> {
    let settings = Settings::from_environment().await?;
    let sdk = config().await;
    let secrets = function.live().current().secrets().clone();
    let (directory, queue) = (Cognito::new(&sdk, settings.user_pool), Queue::new(&sdk, settings.queue_url, secrets));
    let (live, limiter) = (function.live().clone(), Arc::clone(&function.limiter));
    let service = Service::new(live, limiter, Otp::new(items(&function)), directory, Arc::new(queue));
    let service = service.with_sessions(function.sessions());
    let service = match settings.captcha {
        Some(captcha) => service.with_captcha(captcha),
        None => service,
    };
    let (function, service) = (&function, &service);
    let answer = move |request: Request| async move {
        // Looks for a newer policy if it is time; the layer asks for the one in force.
        let _invocation = function.begin().await;
        service.call(request).await
    };
    event::run(answer).await
}

/// The items of codes, which are waited for at least as long as decisions.
fn items(function: &Function) -> Items {
    Items::new(function.limiter.store().clone()).with_deadline(Items::DEADLINE.max(function.deadline()))
}
