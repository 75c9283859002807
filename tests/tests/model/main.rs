//! The protocol of one decision, searched exhaustively: the real `Take` and the real `Write::apply`, in every interleaving.
//!
//! Two or three callers each run [`Take`](tollgate_core::Take) step by step against one item, while requests are delayed,
//! replies are lost, callers crash, clocks disagree, time jumps, the table deletes what has expired, and terms change.
//! Breadth-first search visits every reachable state. Only the stores are left out: they execute the same writes.
//!
//! # What is modelled
//!
//! - A caller starts a call from the item that it last saw, makes a write dated by its own clock, and follows what the
//!   table says. It gives up when a reply is lost, or more than 1 s after it made the write; what it never hears of
//!   counts as not admitted. Its write may still arrive, at any later time, or never.
//! - The table evaluates one write at a time, and may delete the item as soon as its time in whole seconds is past
//!   `expires_at`. True time, which is the table's, moves by the jumps of the scenario.
//! - Clocks are 1 s ahead, right, or 1 s behind: as far apart as clocks that agree with the table may be.
//! - An admission is dated by the instant that its write is dated by. Whoever dates by arrival adds the deadline.
//!
//! # Properties, of every state
//!
//! | property | meaning |
//! | --- | --- |
//! | never over-admits | for all admissions `i <= j`: cost in `[t_i, t_j] <= B + rate * (t_j - t_i + spread of clocks)`, in integers; the largest burst and rate where terms change |
//! | no call is charged twice | at most one charging write of a call is ever applied |
//! | allowed only if charged | no call is allowed unless its own write was applied |
//! | a denial is exact | at the moment of the refusal that it was concluded from, the cost did not fit |
//! | `h` never shrinks | while the item lives |
//! | `expires_at` covers `tat` | whoever finds the item deleted would have found every bucket full |
//! | a corrected write fits | it is refused only if the item has changed: no livelock |
//! | few writes | a call takes two writes, and one more for every change that others make meanwhile |
//! | agreeing clocks pull nothing | the pull-back of a far `tat` is only for clocks that were wrong |
//!
//! Each run also names what must have happened in it (idle form applied, item deleted, reply lost after its write, ...),
//! so that none holds for want of trying.
//!
//! # Scenarios and their bounds
//!
//! | scenario ([`scenarios`]) | callers x calls | jumps | and | states |
//! | --- | --- | --- | --- | --- |
//! | contention | 2 + 2 + 1, one of cost 2 | one of 1 s or 3 s | | 214,422 |
//! | clock skew | 2 + 1 + 2, clocks -1, 0, +1 s | one of 1 s or 3 s | | 252,223 |
//! | losses and crashes | 2 + 1 + 1 | one of 1 s | one loss, one crash | 252,643 |
//! | expiry | 2 + 2, clocks -1, +1 s | three of 1 s or 366 s | deletion | 391,511 |
//! | newer revision | 2 old, 1 + 1 new | one of 1 s or 2 s | 1 per 2 s, burst 2 -> 1/s, burst 3 | 91,687 |
//! | newer revision, skew | 2 old, 3 new, clocks -1, +1 s | two of 1 s or 2 s | same | 273,979 |
//! | two plans | 2 + 3 | two of 1 s or 2 s | 1/s, burst 2 <-> 2/s, burst 3 | 460,137 |
//! | two plans, other ticks | 1 + 2 + 1 | one of 1 s | 1/s, burst 2 <-> 3/s, burst 3 | 55,809 |
//! | two limits | 1 + 2 + 1 | two of 1 s or 376 s | memories of 364 s and 373 s, deletion; requests arrive within 360 s or never | 207,306 |
//! | room while a denial settles | 1 + 1 on two limits, 1 newer on one | one of 1 s | two plans of one limit, a newer revision of the other | 10,583 |
//! | two plans, clocks apart | 2 + 2, clocks -1, +1 s | none | 1/s, burst 12 <-> 2/s, burst 12 | 652 |
//!
//! The whole takes about a minute of processor time without optimisation; the states are counted for the code as it is, and
//! each test asserts that there are about as many.
//!
//! # Mutants
//!
//! Each test in [`mutants`] takes one guard out of the writes on their way to the table and asserts the length of the
//! shortest counterexample. All are caught: `f`, the ceiling and the floor of the busy form; `f` and `tat < now` of the
//! idle form; the `tat` seen, and `f` together with `b`, of the change form; the instant that a change leaves in `b`; the
//! horizon; expiry; not sending an ambiguous write again.
//!
//! What the model cannot tell apart: of the change form's `f` and `b` either is enough here, and a test says so. `b` is
//! there for refunds, which are not part of `Take`. Reads (cost 0, never fits) change nothing and are left to the tests of
//! the core, as is a clock that is plainly wrong: no bound holds for it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod calls;
mod mutant;
mod mutants;
mod operators;
mod properties;
mod refunds;
mod scenario;
mod scenarios;
mod shared;
mod state;
mod table;
