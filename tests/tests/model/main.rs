//! The protocol of one item, searched exhaustively: the real `Take`, `Settlement` and `Write::apply`, in every interleaving.
//!
//! Two or three callers each run [`Take`](tollgate_core::Take) step by step against one item, and [`Settlement`] where another
//! key denies what this one has charged, while operators set and lift holds, requests are delayed, replies are lost, callers
//! crash, clocks disagree, time jumps, the table deletes what has expired, and terms change. Breadth-first search visits
//! every reachable state. Only the stores are left out: they execute the same writes.
//!
//! [`Settlement`]: tollgate_core::Settlement
//!
//! # What is modelled
//!
//! - A caller starts a call from the item that it last saw, makes a write dated by its own clock, and follows what the
//!   table says. It gives up when a reply is lost, or more than 1 s after it made the write; what it never hears of
//!   counts as not admitted. Its write may still arrive, at any later time, or never.
//! - A call may be on another key, too, which denies it after this one was charged, at any time within the deadline. Then it
//!   is never admitted, and its charge is given back from the item that it left; that may be refused, lost or late like any
//!   write, or never begin.
//! - A call may turn out to cost more or less than it was charged, and then settles that before its next. It waits for the answer
//!   and, if none comes, settles once more; the first request may still arrive, before or after.
//! - A caller may take tokens ahead with a write, and spend them in later calls by itself, by its own clock.
//! - An operator looks at the item and sets its hold, again if somebody was faster. Its writes may be late, too.
//! - A caller that charges exactly, as part of a transaction, hears only that its write was applied, not what it left.
//! - The table evaluates one write at a time, and may delete the item as soon as its time in whole seconds is past
//!   `expires_at`. True time, which is the table's, moves by the jumps of the scenario.
//! - Clocks are 1 s ahead, right, or 1 s behind: as far apart as clocks that agree with the table may be.
//! - An admission is dated by the instant that its write is dated by. Whoever dates by arrival adds the deadline.
//!
//! # Properties, of every state
//!
//! | property | meaning |
//! | --- | --- |
//! | never over-admits | for all admissions `i <= j`: cost in `[t_i, t_j] <= B + rate * (t_j - t_i + spread of clocks)`, in integers; the largest burst and rate where terms change, overrides included; of a limit that only reports, what it says is allowed |
//! | no window over-admits | what was admitted in a window is at most what it has, and at most what the item says it counted; so is what the window before a sliding one admitted |
//! | no log over-admits | in no window, shorter by the spread of clocks, was more admitted than it has; its integer is what its entries cost |
//! | no call is settled twice | whatever takes an entry out finds it there |
//! | no call is charged twice | at most one charging write of a call is ever applied |
//! | allowed only if charged | no call is allowed unless its own write was applied |
//! | a denial is exact | at the moment of the refusal that it was concluded from, the cost did not fit a limit that denies |
//! | `h` never shrinks | while the item lives |
//! | `expires_at` covers `tat` and `hold` | whoever finds the item deleted would have found every bucket full, and no hold |
//! | a corrected write fits | it is refused only if the item has changed, a refund likewise: no livelock |
//! | few writes | a call takes two writes, one more where it locks, and one more for every change that others make meanwhile |
//! | agreeing clocks pull nothing | the pull-back of a far `tat` is only for clocks that were wrong |
//! | refunded once, at most the charge | and nothing but `tat` changes |
//! | no refund in another busy period | than the charge's |
//! | no charge under a ban | from the write that sets it until it ends by the fastest clock, or is lifted |
//! | charges go by the hold | a bucket that is charged or moved is under an override just if the item has one for it |
//! | no hold is lost | to callers or to deletion, before it ends by the fastest clock |
//! | nobody is admitted while locked | from the write that sets a lock until it ends by the fastest clock |
//! | a lock is one level higher | than the last, less what was forgotten since, however many were denied at once, and whatever replies were lost |
//! | no lock is lost | to callers or to deletion, before it has ended and its levels are forgotten by the slowest clock |
//! | an override keeps its own bound | what it admits fits its own burst and rate |
//! | both shards never over-admit | what two shards admit together fits the limit that they are parts of |
//!
//! Of a leased limit, what is taken ahead counts when it is spent. The bursts of its plans add up, and what old revisions had taken
//! ahead when a newer one came may be spent beside it.
//!
//! Each run also names what must have happened in it (idle form applied, item deleted, refund late, hold lapsed, ...), so
//! that none holds for want of trying.
//!
//! # Scenarios and their bounds
//!
//! | scenario ([`scenarios`]) | callers x calls | jumps | and | states |
//! | --- | --- | --- | --- | --- |
//! | contention | 2 + 2 + 1, one of cost 2 | one of 1 s or 3 s | | 192,471 |
//! | clock skew | 2 + 1 + 2, clocks -1, 0, +1 s | one of 1 s or 3 s | | 226,748 |
//! | losses and crashes | 2 + 1 + 1 | one of 1 s | one loss, one crash | 172,446 |
//! | expiry | 2 + 2, clocks -1, +1 s | three of 1 s or 366 s | deletion | 352,076 |
//! | newer revision | 2 old, 1 + 1 new | one of 1 s or 2 s | 1 per 2 s, burst 2 -> 1/s, burst 3 | 100,903 |
//! | newer revision, skew | 2 old, 3 new, clocks -1, +1 s | two of 1 s or 2 s | same | 253,987 |
//! | two plans | 2 + 3 | two of 1 s or 2 s | 1/s, burst 2 <-> 2/s, burst 3 | 465,373 |
//! | two plans, other ticks | 1 + 2 + 1 | one of 1 s | 1/s, burst 2 <-> 3/s, burst 3 | 69,869 |
//! | two limits | 1 + 2 + 1 | two of 1 s or 376 s | memories of 364 s and 373 s, deletion; requests arrive within 360 s or never | 166,755 |
//! | room while a denial settles | 1 + 1 on two limits, 1 newer on one | one of 1 s | two plans of one limit, a newer revision of the other | 10,327 |
//! | two plans, clocks apart | 2 + 2, clocks -1, +1 s | none | 1/s, burst 12 <-> 2/s, burst 12 | 639 |
//! | refunds, contention | 2 + 1 that may be refunded, 1 | one of 1 s or 2 s | | 139,298 |
//! | refunds, clock skew | 1 + 2 that may be refunded, clocks -1, +1 s; 1 | two of 1 s | | 268,713 |
//! | refunds, losses and crashes | 1 refunded, 2 | two of 1 s or 2 s | one loss, one crash | 69,349 |
//! | refunds, two plans | 2 + 2 that may be refunded | two of 1 s | 1/s, burst 2 <-> 2/s, burst 3 | 214,718 |
//! | refunds, newer revision | 2 old, 2 new, all may be refunded | one of 1 s or 2 s | 1 per 2 s, burst 2 -> 1/s, burst 3 | 73,528 |
//! | refunds, expiry | 2 that may be refunded, 2, clocks -1, +1 s | two of 1 s or 366 s | deletion | 163,592 |
//! | ban, lifted | 2 + 1 | two of 1 s or 2 s | a ban, lifted | 196,621 |
//! | ban, clocks apart | 2 + 1, clocks -1, +1 s | two of 1 s or 2 s | a ban of 2 s | 79,283 |
//! | ban, expiry | 2 + 1 | three of 1 s or 400 s | a ban of 402 s, deletion; requests arrive within 360 s or never | 200,034 |
//! | tight override | 2 + 1 | two of 1 s | 2/s, burst 3, then 1/s, burst 1, lifted | 106,606 |
//! | loose override, other ticks | 1 + 2, clocks -1, +1 s | two of 1 s or 2 s | 1/s, burst 2, for 2 s 3/s, burst 4 | 38,803 |
//! | override among revisions | 2 old, 2 new | one of 1 s | burst 4 -> burst 2, an override, lifted | 143,313 |
//! | override, then ban | 2 on two limits, 1 on one | two of 1 s | an override of 1 s of one, a ban until 2 s | 87,733 |
//! | refunds under holds | 1 refunded, 2 | two of 1 s | an override of 1 s, a ban until 2 s | 221,582 |
//! | exact beside blind | 2 + 1 exact, 2 | one of 1 s or 3 s | | 256,242 |
//! | exact, refunds | 2 exact, 2, all may be refunded, clocks -1, +1 s | one of 1 s or 2 s | one loss | 253,277 |
//! | exact, two plans | 2 exact, 1 | two of 1 s | two plans, a ban of 1 s | 34,815 |
//! | shadow | 2 + 2 on a limit and a shadow | two of 1 s or 3 s | | 54,380 |
//! | shadow, newer revision | 2 old that may be refunded, 1 new | one of 1 s or 2 s | the shadow's terms change | 6,954 |
//! | shadows alone | 2 that may be refunded, 1 on two shadows | two of 1 s | a ban of 1 s | 95,115 |
//! | windows, contention | 2 + 2 + 1, one of cost 2 | one of 1 s or 2 s | 2 in 2 s; fixed, then sliding, here and below | 161,360 + 83,860 |
//! | windows, expiry | 2 + 2, clocks -1, +1 s | two of 2 s or 370 s | deletion | 115,782 + 127,571 |
//! | windows, refunds | 1 that may be refunded, 2, 1 refunded | one of 2 s | | 43,999 + 38,591 |
//! | windows, newer revision | 2 old, 2 new exact, 1 new | one of 2 s | 2 -> 3 in 2 s | 434,140 + 285,899 |
//! | log, contention | 2 + 2 + 1, one of cost 2 | one of 1 s or 2 s | 2 in 2 s, here and below | 167,535 |
//! | log, expiry | 2 + 2, clocks -1, +1 s | two of 2 s or 370 s | 2 in 3 s; deletion; requests arrive within 360 s or never | 59,263 |
//! | log, successes | 1 that may succeed, 2, 1 that succeeds | one of 2 s | | 53,542 |
//! | log, newer revision | 2 old, 2 new exact, 1 new | one of 2 s | 2 -> 3 in 2 s | 404,452 |
//! | log, settled twice | 2 that succeed, 2 | one of 2 s | one loss | 79,475 |
//! | settling, less | 1 of cost 3 that has cost 1, 2, 1, clocks 0, +1 s | one of 1 s | one loss | 174,306 |
//! | settling, more | 1 of cost 1 that has cost 3, 2, clocks 0, -1 s | two of 1 s or 3 s | debt 1; one loss | 59,366 |
//! | settling, expiry | the same, clocks +1 s | two of 1 s or 430 s | deletion | 30,061 |
//! | locks, at once | 2 + 1 + 1 | one of 2 s | 1 per 2 s; locks of 2 s, 4 s; a level is forgotten in 3 s, here and below | 24,882 |
//! | locks, again and again | 4 + 1 | two of 2 s or 5 s | | 140,535 |
//! | locks, clock skew | 2 + 2, clocks -1, +1 s | two of 1 s or 3 s | | 97,347 |
//! | locks, losses and crashes | 2 + 1 | one of 3 s | one loss, one crash | 7,690 |
//! | locks, expiry | 2 + 1, clocks -1, +1 s | two of 3 s or 800 s | deletion; a level is forgotten in 400 s | 7,670 |
//! | locks that begin anew | 3 + 2 exact | two of 1 s or 3 s | | 472,799 |
//! | locks of a shadow | 2 + 2 on a limit and a shadow | two of 2 s or 3 s | | 109,722 |
//! | leases beside calls that ask | 2, 1 taking ahead, 1 of cost 2 | one of 1 s or 2 s | up to 2 tokens ahead, here and below | 21,895 |
//! | leases, clock skew | 2 + 2, clocks -1, +1 s | two of 1 s or 2 s | | 34,184 |
//! | leases, losses and crashes | 2 + 1 of cost 2 | one of 1 s or 2 s | one loss, one crash | 8,805 |
//! | leases, refused elsewhere | 2 + 2, all may be refused | two of 1 s or 2 s | | 86,263 |
//! | leases, two plans | 3 + 2 | two of 1 s | 1/s, burst 2 <-> 2/s, burst 3 | 63,737 |
//! | leases, newer revision | 2 old, 2 new | two of 1 s or 2 s | 1 per 2 s, burst 3 -> 1/s, burst 2 | 49,535 |
//! | leases, expiry | 2 + 2, clocks -1, +1 s | two of 1 s or 366 s | deletion | 47,576 |
//! | leases, ban | 2, 1 of cost 2 | two of 1 s or 2 s | a ban until 2 s | 52,305 |
//! | [`shards`], two callers | 3 + 2 on either of two shards, and on the other where one denies | two of 1 s | 1/s, burst 3, divided | 56,110 |
//! | [`shards`], lost replies | 2 + 2, one of cost 2 | two of 1 s | the same, one loss | 62,367 |
//!
//! The whole takes about two minutes of processor time without optimisation; the states are counted for the code as it is,
//! and each test asserts that there are about as many.
//!
//! # Mutants
//!
//! Each test in [`mutants`] takes one guard out of the writes on their way to the table, or reckons a refund otherwise, and
//! asserts the length of the shortest counterexample. All are caught:
//!
//! - of the busy form: `f`, the ceiling, the floor, the hold; of the idle form: `f`, `tat < now`, the hold;
//! - of the exact form: the `tat` together with the `g` seen, `f` together with `b`, `g` (which a charge would overwrite),
//!   the hold; the instant that a change leaves in `b`;
//! - of a refund: the `g` seen (11 actions: one that was made at once and arrives later moves a call that came between
//!   ahead of its own time), `b`; and giving all back, or all within the busy period, or the slot where other refunds have
//!   left it no longer, or into another busy period;
//! - of a hold: that it is compared as a value (another, or none, taken for it), that what has ended is removed only as it
//!   was seen, that `expires_at` waits for its end, that a guess by a ban asks for no ban;
//! - of what settles: that the entry is there (6 actions: sent again, it would be given back twice, or charged twice);
//! - of a lock: that every form that charges asks whether there is one, that it is set only on the lock that was seen, that
//!   `expires_at` waits for its levels;
//! - of a lease: that a token is spent before its slot starts (8 actions: by its end would be late already), that it is taken ahead only
//!   of a bucket that nobody gives back to;
//! - of a limit between two shards: that the burst is not rounded up, that the rate is divided, that the other shard is asked only
//!   after an answer (by which a call would be charged on both);
//! - the horizon; expiry; not sending an ambiguous write again.
//!
//! What is not needed here: of the `f` and the `b` that a change has seen either is enough, since every change of `f`
//! renews `b`, and of the `tat` and the `g` either tells a charge; tests say so. Reads (cost 0, never fits) change nothing and
//! are left to the tests of the core, as is a clock that is plainly wrong: no bound holds for it.

//! One-time codes have a model of their own: [`otp`].

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod calls;
mod leases;
mod logs;
mod mutant;
mod mutants;
mod operators;
mod otp;
mod page;
mod penalties;
mod properties;
mod refunds;
mod scenario;
mod scenarios;
mod search;
mod shards;
mod shared;
mod state;
mod table;
mod windows;
