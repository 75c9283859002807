//! Who asks for what, each distinct caller on a route once, and named by number from then on.
//!
//! Invariant: two requests have one number exactly if every policy sees the same route and the same value of each dimension
//! that it counts by.

use crate::entry::{Entry, Request};
use crate::rules::{Lookup, Matched, Place, Rules};
use std::borrow::Cow;
use std::collections::HashMap;
use tollgate_policy::Network;

/// A policy that a log is decided by, and what it asks of a log.
pub(crate) struct Judge<'r> {
    pub(crate) rules: &'r dyn Rules,
    ipv6_prefix: u8,
    lookups: Vec<Lookup>,
}

impl<'r> Judge<'r> {
    pub(crate) fn new(rules: &'r dyn Rules) -> Self {
        Self { rules, ipv6_prefix: rules.ipv6_prefix(), lookups: rules.lookups() }
    }

    /// What a request is charged, and by whom it is counted.
    pub(crate) fn resolve(&self, route: usize, entry: &Entry<'_>) -> crate::rules::Resolved {
        let value = |dimension: &str| {
            let lookup = self.lookups.iter().find(|lookup| lookup.dimension == dimension)?;
            self.find(lookup, entry).map(Found::into_text)
        };
        self.rules.resolve(route, &value)
    }

    /// A name for whoever asked: the first dimension that tells, people before addresses.
    pub(crate) fn client(&self, entry: &Entry<'_>) -> String {
        let is_address = |lookup: &&Lookup| lookup.places.contains(&Place::ClientIp);
        let named = || self.lookups.iter().filter(|lookup| lookup.names_clients);
        let user = named().filter(|lookup| lookup.dimension == "user");
        let people = named().filter(|lookup| lookup.dimension != "user" && !is_address(lookup));
        let mut order = user.chain(people).chain(named().filter(is_address));
        let found = order.find_map(|lookup| Some((lookup, self.find(lookup, entry)?.into_text())));
        let address = || entry.client_ip.map(|address| Network::of(address, self.ipv6_prefix).to_string());
        match (found, address()) {
            (Some((lookup, value)), _) => format!("{}:{value}", lookup.dimension),
            (None, Some(address)) => format!("client_ip:{address}"),
            (None, None) => "unknown".to_owned(),
        }
    }

    fn find<'e>(&self, lookup: &Lookup, entry: &'e Entry<'_>) -> Option<Found<'e>> {
        lookup.places.iter().find_map(|place| self.look(place, entry))
    }

    fn look<'e>(&self, place: &Place, entry: &'e Entry<'_>) -> Option<Found<'e>> {
        let text = |value: &'e str| Some(Found::Text(Cow::Borrowed(value)));
        match place {
            Place::ClientIp => Some(Found::Network(Network::of(entry.client_ip?, self.ipv6_prefix))),
            Place::AddressIn(field) => {
                let last = entry.fields.get(field)?.rsplit(',').next()?.trim();
                Network::read(last, self.ipv6_prefix).map(Found::Network)
            }
            Place::User => text(entry.user.as_deref()?),
            Place::Field(field) => text(entry.fields.get(field)?),
            Place::Header(name) => {
                let spelled = [format!("header.{name}"), format!("cs({name})")];
                text(spelled.iter().find_map(|field| entry.fields.get_any_case(field))?)
            }
            Place::Query(name) => {
                let query = entry.request.as_ref().map(Request::query).filter(|query| !query.is_empty())?;
                let mut pairs = form_urlencoded::parse(query.as_bytes());
                pairs.find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| Found::Text(value))
            }
            Place::Path(name) => {
                let request = entry.request.as_ref()?;
                self.rules.path_parameter(&request.method, request.path(), name).map(|value| Found::Text(value.into()))
            }
        }
    }
}

enum Found<'e> {
    Network(Network),
    Text(Cow<'e, str>),
}

impl Found<'_> {
    fn into_text(self) -> String {
        match self {
            Self::Network(network) => network.to_string(),
            Self::Text(text) => text.into_owned(),
        }
    }
}

/// The numbers of callers.
#[derive(Default)]
pub(crate) struct Callers {
    texts: HashMap<Box<str>, u32>,
    networks: HashMap<Network, u32>,
    known: HashMap<Box<[u32]>, u32>,
    /// The key of the request that is looked up.
    key: Vec<u32>,
}

impl Callers {
    /// The number of a caller, and whether it is a new one: numbers are given in turn from 0.
    pub(crate) fn number(&mut self, judges: &[Judge<'_>], matched: &[Matched], entry: &Entry<'_>) -> (u32, bool) {
        self.key.clear();
        self.key.extend(matched.iter().map(|matched| match matched {
            Matched::Unmatched => 0,
            Matched::Exempt => 1,
            Matched::Route(route) => u32::try_from(*route).unwrap_or(u32::MAX - 2) + 2,
        }));
        for judge in judges {
            for lookup in &judge.lookups {
                let id = match judge.find(lookup, entry) {
                    None => 0,
                    Some(Found::Network(network)) => {
                        let next = next(self.networks.len());
                        *self.networks.entry(network).or_insert(next)
                    }
                    Some(Found::Text(text)) => match self.texts.get(&*text) {
                        Some(id) => *id,
                        None => {
                            let next = next(self.texts.len());
                            self.texts.insert(text.into(), next);
                            next
                        }
                    },
                };
                self.key.push(id);
            }
        }
        match self.known.get(&*self.key) {
            Some(number) => (*number, false),
            None => {
                let number = next(self.known.len()) - 1;
                self.known.insert(self.key.as_slice().into(), number);
                (number, true)
            }
        }
    }
}

/// A number for one more, from 1. Four billion distinct callers do not fit into memory.
fn next(known: usize) -> u32 {
    u32::try_from(known).map_or(u32::MAX, |known| known.saturating_add(1))
}
