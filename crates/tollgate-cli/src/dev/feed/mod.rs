//! What requests came to, for the console: the newest of them, and what each limit has said of all.
//!
//! | module | what it is |
//! | --- | --- |
//! | `edge` | the rules in front, which only report here |
//! | `told` | a request and a limit's word on it, as JSON |
//!
//! It is a [`Meter`], fed by the events that everything is counted by, and by the gateway, which knows a request's answer. Invariants:
//! memory is bounded; what limits have said is summed up from the very decisions that `Counters` counts, as they are made.

mod edge;
mod told;

pub(super) use edge::{Edge, Seen};
pub(super) use told::Told;

use axum::http::StatusCode;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use told::Said;
use tollgate_core::Charges;
use tollgate_dynamodb::{Event, Meter};

/// Most requests that are kept.
const MOST: usize = 1000;

/// Most requests that are told at once.
const MOST_TOLD: usize = 250;

/// What answers a request, as the console calls it. What is decided outside any request is nobody's.
type Layer = &'static str;
const NOBODY: Layer = "none";

tokio::task_local! {
    /// What has been decided for the request that this task answers.
    static UNDER_WAY: RefCell<UnderWay>;
}

/// A request that has no answer yet.
#[derive(Debug)]
struct UnderWay {
    layer: Layer,
    limits: Vec<Said>,
    step_up: Option<&'static str>,
}

/// How often a limit of a layer said something, and from where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Word {
    layer: Layer,
    limit: String,
    outcome: &'static str,
    source: &'static str,
}

/// How often a layer answered with a status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Answer {
    layer: Layer,
    status: u16,
}

/// A count, and of what.
#[derive(Debug, Serialize)]
struct Counted<T> {
    #[serde(flatten)]
    of: T,
    n: u64,
}

/// What has been counted of limits and answers since the server started.
#[derive(Debug, Serialize)]
pub(super) struct Sums {
    limits: Vec<Counted<Word>>,
    answers: Vec<Counted<Answer>>,
}

/// The newest requests.
#[derive(Debug)]
pub(super) struct News {
    /// The number of the last request that is told here, to ask for what comes after.
    pub(super) cursor: u64,
    /// How many in between are kept no longer.
    pub(super) missed: u64,
    pub(super) requests: Vec<Told>,
}

#[derive(Debug, Default)]
struct Kept {
    requests: VecDeque<Told>,
    words: BTreeMap<Word, u64>,
    answers: BTreeMap<Answer, u64>,
}

/// What requests came to.
#[derive(Debug)]
pub(super) struct Feed {
    kept: Mutex<Kept>,
    edge: Option<Mutex<Edge>>,
    /// The number of the last request.
    last: watch::Sender<u64>,
}

impl Feed {
    /// With the rules in front, if the policy has any.
    pub(super) fn new(edge: Option<Edge>) -> Self {
        Self { kept: Mutex::default(), edge: edge.map(Mutex::new), last: watch::Sender::new(0) }
    }

    /// Waits for a request's answer and keeps both. `seen` is what the rules in front see of it.
    pub(super) async fn keep<T>(
        &self,
        layer: Layer,
        mut request: Told,
        seen: Option<&Seen>,
        answer: impl Future<Output = T>,
        status: impl FnOnce(&T) -> StatusCode,
    ) -> T {
        if let (Some(edge), Some(seen)) = (&self.edge, seen) {
            let said = lock(edge).count(seen);
            said.iter().for_each(|said| self.sum(said.word("edge")));
            request.limits.extend(said);
        }
        let under_way = RefCell::new(UnderWay { layer, limits: Vec::new(), step_up: None });
        let answered = async {
            let answer = answer.await;
            let (limits, step_up) = UNDER_WAY.with(|it| {
                let mut it = it.borrow_mut();
                (std::mem::take(&mut it.limits), it.step_up)
            });
            request.limits.extend(limits);
            self.push(request.answered(layer, status(&answer).as_u16(), step_up));
            answer
        };
        UNDER_WAY.scope(under_way, answered).await
    }

    /// What came after a request, the oldest first.
    pub(super) fn since(&self, cursor: u64) -> News {
        let kept = lock(&self.kept);
        let first = kept.requests.front().map_or(0, |request| request.number);
        let newer = kept.requests.iter().filter(|request| request.number > cursor);
        let requests: Vec<_> = newer.take(MOST_TOLD).cloned().collect();
        let missed = if requests.is_empty() { 0 } else { first.saturating_sub(cursor + 1) };
        News { cursor: requests.last().map_or(cursor, |request| request.number), missed, requests }
    }

    /// Hears of every request from now on.
    pub(super) fn listen(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    pub(super) fn sums(&self) -> Sums {
        let kept = lock(&self.kept);
        let limits = kept.words.iter().map(|(of, n)| Counted { of: of.clone(), n: *n }).collect();
        let answers = kept.answers.iter().map(|(of, n)| Counted { of: of.clone(), n: *n }).collect();
        Sums { limits, answers }
    }

    fn push(&self, mut request: Told) {
        let mut kept = lock(&self.kept);
        let answer = Answer { layer: request.layer, status: request.status };
        *kept.answers.entry(answer).or_default() += 1;
        request.number = *self.last.borrow() + 1;
        self.last.send_replace(request.number);
        kept.requests.push_back(request);
        let surplus = kept.requests.len().saturating_sub(MOST);
        kept.requests.drain(..surplus);
    }

    /// Keeps what a limit said, for the sums and for the request that is under way.
    fn said(&self, said: impl IntoIterator<Item = Said>) {
        for said in said {
            let layer = UNDER_WAY.try_with(|it| it.borrow().layer).unwrap_or(NOBODY);
            self.sum(said.word(layer));
            // Outside of a request there is nothing that it belongs to.
            let _ = UNDER_WAY.try_with(|it| it.borrow_mut().limits.push(said));
        }
    }

    fn sum(&self, word: Word) {
        *lock(&self.kept).words.entry(word).or_default() += 1;
    }
}

impl Meter for Feed {
    fn record(&self, event: Event<'_>) {
        match event {
            Event::Decision(decision) => {
                self.said(decision.limits.iter().map(Said::of));
                self.said(decision.unasked.iter().filter_map(Said::unasked));
            }
            Event::Unavailable(charges) => {
                let all =
                    |charges: &Charges| charges.charges().iter().map(Said::closed(charges.key())).collect::<Vec<_>>();
                self.said(charges.iter().flat_map(all));
            }
            Event::StepUpRequired { reason, .. } => {
                let _ = UNDER_WAY.try_with(|it| it.borrow_mut().step_up = Some(reason));
            }
            // The rest are counts.
            _ => {}
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
