//! What can go wrong on the way to the table and back, and which request it happens to.
//!
//! Invariant: what happens to a request follows from the schedule's seed, the caller, the call, the item and how many requests of the
//! call were for that item before: not from when anything happens, nor from what others do.

use std::time::Duration;

/// What becomes of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// It is answered as if nothing were in between.
    Nothing,
    /// It reaches the table late; beyond the deadline when nobody waits for it any more.
    LateThere(Duration),
    /// The table's reply is late.
    LateBack(Duration),
    /// The table's reply is dropped, and the connection closed.
    ReplyDropped,
    /// The table's reply is dropped, and the connection left open.
    ReplyHeld,
    /// The connection is closed in the middle of the reply's body.
    ReplyCut,
    /// The connection is reset before the table has the request.
    ResetBefore,
    /// The connection is reset once the table has answered.
    ResetAfter,
    /// The server answers 500 and does nothing.
    ErrorBefore,
    /// The server does what it is asked and answers 500.
    ErrorAfter,
    /// The table throttles.
    Throttled,
    /// The table throttles one key.
    HotKey,
    /// The request is taken and lost: the network is cut.
    Lost,
}

impl Fault {
    /// Every kind, and how often it is drawn beside the others. What a caller waits its whole deadline for is drawn less often.
    pub const KINDS: [(Self, usize); 12] = [
        (Self::LateThere(Duration::ZERO), 3),
        (Self::LateBack(Duration::ZERO), 3),
        (Self::ReplyDropped, 4),
        (Self::ReplyHeld, 1),
        (Self::ReplyCut, 4),
        (Self::ResetBefore, 4),
        (Self::ResetAfter, 4),
        (Self::ErrorBefore, 3),
        (Self::ErrorAfter, 4),
        (Self::Throttled, 6),
        (Self::HotKey, 2),
        (Self::Lost, 1),
    ];

    /// The same, late by so much if it is late.
    fn by(self, late: Duration) -> Self {
        match self {
            Self::LateThere(_) => Self::LateThere(late),
            Self::LateBack(_) => Self::LateBack(late),
            other => other,
        }
    }

    /// The kind that it is of, as it is told.
    pub fn kind(self) -> String {
        format!("{:?}", self.by(Duration::ZERO)).trim_end_matches("(0ns)").to_owned()
    }

    /// Whether the caller is told that nothing was done and to come back.
    pub fn throttles(self) -> bool {
        matches!(self, Self::Throttled | Self::HotKey)
    }

    /// Whether the caller gets no reply that says what was done. (Of a late one that is for its deadline to say.)
    pub fn breaks(self) -> bool {
        !self.throttles() && !matches!(self, Self::Nothing | Self::LateThere(_) | Self::LateBack(_))
    }
}

/// How a schedule's requests fare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weather {
    pub seed: u64,
    /// Of a thousand requests so many meet a fault.
    pub per_mille: u64,
    /// The kinds that are drawn from, by their place in [`Fault::KINDS`].
    pub kinds: Vec<usize>,
}

impl Weather {
    /// As `random` has it: a few requests or nearly all of them meet a fault, of every kind or of one or two.
    pub fn drawn(random: &mut fastrand::Rng, seed: u64) -> Self {
        let per_mille = [50, 150, 300, 600, 900][random.usize(..5)];
        let mut kinds: Vec<_> = (0..Fault::KINDS.len()).collect();
        if random.bool() {
            random.shuffle(&mut kinds);
            kinds.truncate(random.usize(1..=2));
        }
        Self { seed, per_mille, kinds }
    }

    /// What happens to the `nth` request of a call for an item.
    pub fn fault(&self, caller: usize, call: usize, item: &str, nth: usize, deadline: Duration) -> Fault {
        let mut random = fastrand::Rng::with_seed(self.seed);
        for part in [caller as u64, call as u64, nth as u64].into_iter().chain(item.bytes().map(u64::from)) {
            // Each part is mixed in by a generator that it has been added to.
            random.seed(random.get_seed().wrapping_add(part).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            random = fastrand::Rng::with_seed(random.u64(..));
        }
        if random.u64(..1000) >= self.per_mille {
            return Fault::Nothing;
        }
        let drawn: Vec<_> = self
            .kinds
            .iter()
            .flat_map(|kind| std::iter::repeat_n(Fault::KINDS[*kind].0, Fault::KINDS[*kind].1))
            .collect();
        // Mostly within the deadline, and now and then when nobody waits any more.
        let late = if random.u64(..4) == 0 { 1.1 + random.f64() } else { 0.1 + 0.3 * random.f64() };
        drawn[random.usize(..drawn.len())].by(deadline.mul_f64(late))
    }
}

/// How the network of a caller is cut for some of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Whatever is sent is lost without a word.
    Silent,
    /// The endpoint refuses connections, and those that there were are reset.
    Refused,
}
