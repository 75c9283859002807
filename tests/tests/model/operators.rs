//! Operators: each looks at the item and sets or lifts the hold, again if somebody was faster.

use crate::scenario::Change;
use crate::shared::Shared;
use crate::state::{Flight, Phase, Reply, State, Work};
use crate::table::{EPOCH, Table};
use tollgate_core::{Item, Override, Timestamp, Write};

impl Table {
    pub(crate) fn start_change(&self, s: &mut State, p: usize) {
        let turn = s.parties[p].turns;
        s.parties[p].turns += 1;
        let item = s.item.clone();
        self.change(s, p, turn, item.as_deref());
    }

    /// Asks for the change `turn`, to the item as it was found.
    fn change(&self, s: &mut State, p: usize, turn: usize, item: Option<&Item>) {
        let now = self.moment(p, s.secs).now;
        let seen = item.and_then(|item| item.hold.as_ref());
        let mut hold = seen.and_then(|hold| hold.in_force(now)).unwrap_or_default();
        hold.id = s.fresh_hold();
        let until = |secs: u64| Timestamp::from_secs(EPOCH + secs);
        let next = match &self.scenario.operator(p).changes[turn] {
            Change::Ban(secs) => {
                hold.banned_until = Some(until(*secs));
                Some(hold)
            }
            Change::Override(limit, bucket, secs) => {
                hold.overrides.insert(limit.clone(), Override { figures: (*bucket).into(), until: until(*secs) });
                Some(hold)
            }
            Change::Lift => None,
        };
        let horizon = item.and_then(|item| item.horizon).unwrap_or(0);
        let request = Some(Write::set_hold(now, horizon, seen, next));
        let (work, busy_period, secs) = (Work::Change, None, s.secs);
        let flight = Flight { party: p, turn, work, request, secs, busy_period, ahead: 0, writes: 0, applied: 0 };
        s.parties[p].phase = Phase::Asked(Shared::new(flight));
    }

    pub(crate) fn change_answered(&self, s: &mut State, p: usize, reply: Reply) {
        let turn = s.parties[p].turns - 1;
        s.parties[p].phase = Phase::Idle;
        if let Reply::Refused(item, _) = reply {
            self.change(s, p, turn, item.as_deref());
        }
    }
}
