//! The protocol of one-time codes, searched exhaustively: the real [`Issue`], [`Attempt`] and [`Write::apply`], hashes included, in
//! every interleaving.
//!
//! Those who ask for codes and those who type them each run the protocol step by step against one account's item, while requests
//! are delayed, replies are lost, callers die between their writes, clocks disagree, time jumps and the table deletes what has
//! expired. A code that is typed is the right one of some message, or a wrong one. A referee keeps its own account of what has
//! happened, in true time, and asks the item nothing.
//!
//! [`Issue`]: tollgate_otp::issue::Issue
//! [`Attempt`]: tollgate_otp::verify::Attempt
//! [`Write::apply`]: tollgate_otp::Write::apply
//!
//! # Properties, of every state
//!
//! | property | meaning |
//! | --- | --- |
//! | verified once | of all who type the right code of a message one at most is told so |
//! | only the right code | and only who has typed it |
//! | only the last code | nobody by a code after another one was stored |
//! | not after its time | nor later than it is good for, the spread of clocks and a deadline added |
//! | few guesses of a code | no more are compared than it can be tried |
//! | few guesses of an account | between two starts of its window, at least a window apart by the fastest clock, no more wrong ones than its budget |
//! | only what is active counts | nothing is counted for a code that was used, has expired, or is not the last one |
//! | sent once stored | a message goes out only for a code that the table has |
//! | sent after the cooldown | and not sooner after another one |
//! | nothing is sent that is locked | to an account that has used its budget up |
//! | a refusal is exact | who is told that there is no such code, or that it is locked, is told what the referee knows |
//! | the right code is not refused | where its secret is known |
//! | few writes | a code takes two writes to verify; to send, two and one for every other that is sent meanwhile |
//!
//! Each run also names what must have happened in it, so that none holds for want of trying.
//!
//! # Scenarios
//!
//! Codes can be tried twice, accounts three times in 5 min; codes are good for 1 min; the cooldown is 30 s, then 60 s. Every request
//! of somebody who has given up may still arrive, at any time or never.
//!
//! | scenario ([`scenarios`]) | who | jumps | and | states |
//! | --- | --- | --- | --- | --- |
//! | right, at once | 1 code, 3 right | none | | 472 |
//! | wrong, at once | 1 code, 3 wrong, 1 right | none | | 1,240 |
//! | resent | 2 codes, the right one and then the first, 1 right | one of 31 s | | 6,303 |
//! | senders at once | 2 + 2 codes, 1 right | two of 31 s | | 64,801 |
//! | budget | 3 codes, 4 wrong | two of 61 s | | 16,395 |
//! | windows | 2 codes, 4 wrong, clocks +1, -1 s | two of 240 s or 61 s | | 8,424 |
//! | short windows | 2 codes, 1 right | two of 61 s or 30 s | a window of 1 min, a cooldown of 90 s | 1,056 |
//! | expiry | 1 code, 2 right, 1 wrong, clocks +1, -1, 0 s | three of 1 s or 61 s | | 15,186 |
//! | losses | 2 codes, right and then wrong, 1 right | two of 31 s | one loss | 63,381 |
//! | deletion | 2 + 1 codes, wrong and then right, clocks +1, -1, 0 s | two of 340 s | deletion | 15,332 |
//! | rotation | 1 code of the old secret, 1 of the new, 2 right where both are known, 1 where the new one is | one of 31 s | | 13,989 |
//!
//! # Mutants
//!
//! Each test in [`mutants`] takes one guard away and asserts the length of the shortest counterexample. All are caught: comparing
//! in the condition of a write, or before the attempt is counted; each condition of the count; using a code without any
//! condition, or without one of them; a new code that resets what the account has tried; sending by what was seen without asking whether
//! it is still so, or before the table has said that it has the code; deleting the account's budget with its code; verifying by the active
//! secret alone.

mod mutant;
mod mutants;
mod referee;
mod scenario;
mod scenarios;
mod table;
