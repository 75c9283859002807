//! The smallest `lambda_http` function, which `tollgate bench` starts beside the limiter to compare cold starts and sizes.

use lambda_http::{Body, Error, Request, Response, run, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(service_fn(async |_: Request| Ok::<_, Error>(Response::new(Body::from("hello world"))))).await
}
