//! A core [`Write`] as DynamoDB expressions, word for word.
//!
//! ```text
//! new or busy   (attribute_not_exists(#t0) OR (#t0 BETWEEN :from0 AND :to0 AND #f0 = :was0))
//! of a log      (attribute_not_exists(#t0) OR (#t0 <= :to0 AND #f0 = :was0))
//!               SET #t0 = if_not_exists(#t0, :start0) + :inc0, #g0 = if_not_exists(#g0, :start0) + :inc0, …
//! new or idle   (attribute_not_exists(#t0) OR (#t0 < :below0 AND #f0 = :was0))
//!               SET #t0 = :tat0, #f0 = :f0, #b0 = :b0, #g0 = :g0
//! exact         (#t0 = :seen0 AND #f0 = :was0 AND #b0 = :in0 AND #g0 = :up0), or attribute_not_exists(#t0)
//! give back     (#b0 = :in0 AND #g0 = :up0)
//!               SET #t0 = #t0 - :by0
//! with an entry … AND (attribute_not_exists(#e0) OR size(#e0) < :most0)      ADD #e0 :entry0
//! take out      (contains(#e0, :held0))                                     SET #t0 = #t0 - :by0 DELETE #e0 :entry0
//! not locked    (attribute_not_exists(#p0) OR #p0 < :free0)
//! lock          #p0 = :locked0, or attribute_not_exists(#p0)
//!               SET #p0 = :lock0
//! item          (attribute_not_exists(#h) OR #h <= :hmax) AND attribute_not_exists(#hold), or #hold = :hold
//! ```
//!
//! Invariant: the expression says what [`Write::apply`] does, no more and no less; the conformance tests compare them.

use crate::attributes::{self, Attributes, EXPIRES_AT, HOLD, HORIZON, Names, number, numbers};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;
use tollgate_core::penalty::PenaltyExpect;
use tollgate_core::write::{Assign, ItemCheck, Memory};
use tollgate_core::{Check, Entering, Expect, LimitWrite, Penalty, PenaltyWrite, Write};

/// The expressions of one `UpdateItem`.
#[derive(Debug, Clone, Default)]
pub struct Expressions {
    /// `ConditionExpression`.
    pub condition: String,
    /// `UpdateExpression`.
    pub update: String,
    /// `ExpressionAttributeNames`.
    pub names: HashMap<String, String>,
    /// `ExpressionAttributeValues`.
    pub values: Attributes,
}

/// Renders a write.
#[must_use]
pub fn render(write: &Write) -> Expressions {
    let mut out = Expressions::default();
    let mut conditions = Vec::new();
    let mut update = Update::default();
    for check in &write.checks {
        conditions.push(out.item_check(check));
    }
    for (i, limit) in write.limits.iter().enumerate() {
        let mut slot = Slot::new(&mut out, i, limit);
        conditions.push(slot.condition(limit));
        update.set.push(slot.assignment(&limit.assign));
        slot.enter(&limit.entering, &mut update);
    }
    if let Some(Memory { horizon, expires_at }) = write.memory {
        let (h, x) = (out.name("#h", HORIZON), out.name("#x", EXPIRES_AT));
        let (horizon, expires_at) = (out.value(":h", number(horizon)), out.value(":x", number(expires_at)));
        update.set.push(format!("{h} = {horizon}, {x} = {expires_at}"));
    }
    for (i, penalty) in write.penalties.iter().enumerate() {
        out.penalty(i, penalty, &mut conditions, &mut update);
    }
    if let Some(next) = &write.hold {
        let hold = out.name("#hold", HOLD);
        match next {
            Some(next) => {
                let next = out.value(":next", AttributeValue::S(next.to_string()));
                update.set.push(format!("{hold} = {next}"));
            }
            None => update.remove.push(hold),
        }
    }
    out.condition = conditions.join(" AND ");
    out.update = update.render();
    out
}

/// The clauses of an `UpdateExpression`.
#[derive(Default)]
struct Update {
    set: Vec<String>,
    remove: Vec<String>,
    add: Vec<String>,
    delete: Vec<String>,
}

impl Update {
    fn render(&self) -> String {
        let clauses = [("SET", &self.set), ("REMOVE", &self.remove), ("ADD", &self.add), ("DELETE", &self.delete)];
        let some = clauses.iter().filter(|(_, actions)| !actions.is_empty());
        some.map(|(clause, actions)| format!("{clause} {}", actions.join(", "))).collect::<Vec<_>>().join(" ")
    }
}

impl Expressions {
    /// Declares a placeholder of an attribute's name, and returns it. DynamoDB refuses one that no expression uses.
    pub fn name(&mut self, placeholder: &str, attribute: &str) -> String {
        self.names.insert(placeholder.to_owned(), attribute.to_owned());
        placeholder.to_owned()
    }

    /// Declares a placeholder of a value, and returns it. DynamoDB refuses one that no expression uses.
    pub fn value(&mut self, placeholder: &str, value: AttributeValue) -> String {
        self.values.insert(placeholder.to_owned(), value);
        placeholder.to_owned()
    }

    /// Adds what a write requires, sets and removes of one limit's penalty.
    fn penalty(&mut self, i: usize, penalty: &PenaltyWrite, conditions: &mut Vec<String>, update: &mut Update) {
        let p = self.name(&format!("#p{i}"), &attributes::penalty_name(&penalty.limit));
        conditions.push(match penalty.expect {
            PenaltyExpect::Unlocked(now) => {
                let free = self.value(&format!(":free{i}"), number(Penalty::in_force_from(now)));
                format!("(attribute_not_exists({p}) OR {p} < {free})")
            }
            PenaltyExpect::Is(None) => format!("attribute_not_exists({p})"),
            PenaltyExpect::Is(Some(seen)) => {
                let locked = self.value(&format!(":locked{i}"), number(seen));
                format!("{p} = {locked}")
            }
        });
        match penalty.next {
            Some(Some(next)) => {
                let lock = self.value(&format!(":lock{i}"), number(next));
                update.set.push(format!("{p} = {lock}"));
            }
            Some(None) => update.remove.push(p),
            None => {}
        }
    }

    fn item_check(&mut self, check: &ItemCheck) -> String {
        match check {
            ItemCheck::HorizonAtMost(secs) => {
                let (horizon, most) = (self.name("#h", HORIZON), self.value(":hmax", number(secs)));
                format!("(attribute_not_exists({horizon}) OR {horizon} <= {most})")
            }
            ItemCheck::HoldIs(None) => format!("attribute_not_exists({})", self.name("#hold", HOLD)),
            ItemCheck::HoldIs(Some(hold)) => {
                let (name, seen) = (self.name("#hold", HOLD), self.value(":hold", AttributeValue::S(hold.to_string())));
                format!("{name} = {seen}")
            }
        }
    }
}

/// The placeholders of one limit. DynamoDB refuses a name that no expression uses, so each is declared where it is used.
struct Slot<'e> {
    out: &'e mut Expressions,
    i: usize,
    names: Names,
}

impl<'e> Slot<'e> {
    fn new(out: &'e mut Expressions, i: usize, limit: &LimitWrite) -> Self {
        Self { out, i, names: Names::of(&limit.limit) }
    }

    fn tat(&mut self) -> String {
        self.out.name(&format!("#t{}", self.i), &self.names.tat)
    }

    fn f(&mut self) -> String {
        self.out.name(&format!("#f{}", self.i), &self.names.f)
    }

    fn b(&mut self) -> String {
        self.out.name(&format!("#b{}", self.i), &self.names.b)
    }

    fn g(&mut self) -> String {
        self.out.name(&format!("#g{}", self.i), &self.names.g)
    }

    fn e(&mut self) -> String {
        self.out.name(&format!("#e{}", self.i), &self.names.e)
    }

    fn value(&mut self, what: &str, value: AttributeValue) -> String {
        let placeholder = format!(":{what}{}", self.i);
        self.out.value(&placeholder, value)
    }

    fn condition(&mut self, limit: &LimitWrite) -> String {
        let mut all = |checks: &[Check]| checks.iter().map(|check| self.check(check)).collect::<Vec<_>>().join(" AND ");
        match &limit.expect {
            Expect::Absent => format!("attribute_not_exists({})", self.tat()),
            Expect::AbsentOr(checks) => {
                let checks = all(checks);
                format!("(attribute_not_exists({}) OR ({checks}))", self.tat())
            }
            Expect::Present(checks) => format!("({})", all(checks)),
        }
    }

    fn check(&mut self, check: &Check) -> String {
        match check {
            Check::TatBetween(from, to) => {
                let (from, to) = (self.value("from", number(from)), self.value("to", number(to)));
                format!("{} BETWEEN {from} AND {to}", self.tat())
            }
            Check::TatAtMost(most) => {
                let to = self.value("to", number(most));
                format!("{} <= {to}", self.tat())
            }
            Check::TatBelow(than) => {
                let than = self.value("below", number(than));
                format!("{} < {than}", self.tat())
            }
            Check::TatIs(tat) => {
                let seen = self.value("seen", number(tat));
                format!("{} = {seen}", self.tat())
            }
            Check::TermsAre(terms) => {
                let was = self.value("was", AttributeValue::S(terms.to_string()));
                format!("{} = {was}", self.f())
            }
            Check::BusyPeriodIs(period) => {
                let within = self.value("in", AttributeValue::S(period.to_string()));
                format!("{} = {within}", self.b())
            }
            Check::GrossIs(ticks) => {
                let up = self.value("up", number(ticks));
                format!("{} = {up}", self.g())
            }
            Check::Holds(entry) => {
                let (e, held) = (self.e(), self.value("held", number(entry)));
                format!("contains({e}, {held})")
            }
            Check::EntriesBelow(most) => {
                let (e, most) = (self.e(), self.value("most", number(most)));
                format!("(attribute_not_exists({e}) OR size({e}) < {most})")
            }
        }
    }

    fn enter(&mut self, entering: &Entering, update: &mut Update) {
        match entering {
            Entering::Keep => {}
            Entering::Set(entries) if entries.is_empty() => update.remove.push(self.e()),
            Entering::Set(entries) => {
                let (e, all) = (self.e(), self.value("e", numbers(entries.iter())));
                update.set.push(format!("{e} = {all}"));
            }
            Entering::Add(entry) => {
                let (e, one) = (self.e(), self.value("entry", numbers([entry])));
                update.add.push(format!("{e} {one}"));
            }
            Entering::Remove(entry) => {
                let (e, one) = (self.e(), self.value("entry", numbers([entry])));
                update.delete.push(format!("{e} {one}"));
            }
        }
    }

    fn assignment(&mut self, assign: &Assign) -> String {
        let tat = self.tat();
        match assign {
            Assign::Extend { start, inc, terms, busy_period } => {
                let (start, inc) = (self.value("start", number(start)), self.value("inc", number(inc)));
                let new_f = self.value("f", AttributeValue::S(terms.to_string()));
                let new_b = self.value("b", AttributeValue::S(busy_period.to_string()));
                let (f, b, g) = (self.f(), self.b(), self.g());
                format!(
                    "{tat} = if_not_exists({tat}, {start}) + {inc}, {g} = if_not_exists({g}, {start}) + {inc}, \
                     {f} = if_not_exists({f}, {new_f}), {b} = if_not_exists({b}, {new_b})"
                )
            }
            Assign::Replace(next) => {
                let (new_tat, new_g) = (self.value("tat", number(next.tat)), self.value("g", number(next.gross)));
                let new_f = self.value("f", AttributeValue::S(next.terms.to_string()));
                let new_b = self.value("b", AttributeValue::S(next.busy_period.to_string()));
                let (f, b, g) = (self.f(), self.b(), self.g());
                format!("{tat} = {new_tat}, {f} = {new_f}, {b} = {new_b}, {g} = {new_g}")
            }
            Assign::GiveBack { by } => {
                let by = self.value("by", number(by));
                format!("{tat} = {tat} - {by}")
            }
        }
    }
}
