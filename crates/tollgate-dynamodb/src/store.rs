//! The store that the limiter drives: read an item, or write one or several if conditions hold. [`DynamoStore`] can also
//! scan and delete, for [`admin`](crate::admin) alone.
//!
//! Invariant: a write, and a transaction of writes, is one request, and is never sent twice by this layer. Its failure says whether it may have been
//! applied ([`Error::fate`]).

use crate::attributes::{self, Attributes};
use crate::clock::Offset;
use crate::connect::Connected;
use crate::error::{self, Context, Error, Result};
use crate::expression::{self, Expressions};
use crate::kept_out;
use crate::meter::{Event, Meter};
use crate::partition_key;
use crate::thaw::Rest;
use crate::wire::Wire;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConsumedCapacity, KeysAndAttributes, ReturnConsumedCapacity, ReturnValue,
    ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use tollgate_core::take::Moment;
use tollgate_core::{Clock, Item, ItemKey, LimitName, Timestamp, Write};

/// What became of a write whose answer arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// Its condition held; this is the item afterwards.
    Applied(Item),
    /// Its condition did not hold and nothing was written; this is the item that was found.
    Refused(Option<Item>),
}

/// What became of a transaction whose answer arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transacted {
    /// All conditions held, and all was written.
    Applied,
    /// Nothing was written. For each write, in order: what was found, if its own condition did not hold.
    Refused(Vec<Option<Option<Item>>>),
}

/// What became of an update whose answer arrived, whatever the item is about.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub enum Updated {
    /// Its condition held; these are the item's attributes afterwards.
    Applied(Attributes),
    /// Its condition did not hold and nothing was written; this is what was found.
    Refused(Option<Attributes>),
}

/// What became of several updates, all or none, whose answer arrived.
#[derive(Debug, Clone, PartialEq)]
pub enum Together {
    /// All conditions held, and all was written.
    Applied,
    /// Nothing was written. For each write, in order: what was found, if its own condition did not hold.
    Refused(Vec<Option<Option<Attributes>>>),
}

/// What became of a delete whose answer arrived.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Deleted {
    /// Its condition held: the item is gone, or was not there.
    Gone {
        /// Whether there was one.
        existed: bool,
    },
    /// It was left alone; this is what was found.
    Refused(Attributes),
}

/// What a scan is after.
pub(crate) enum Sought {
    /// Items whose `pk` contains all parts of one of these keys, or is a digest.
    Keys(Vec<Vec<String>>),
    /// Items with a hold.
    Held,
    /// Items that one of these limits has locked.
    Locked(Vec<LimitName>),
}

impl Sought {
    /// Names of the attributes that are read beside those of every item.
    fn names(&self) -> Vec<(String, String)> {
        let Self::Locked(limits) = self else { return Vec::new() };
        limits.iter().enumerate().map(|(i, limit)| (format!("#p{i}"), attributes::penalty_name(limit))).collect()
    }

    /// The filter, and the values that it names.
    fn filter(&self) -> (String, Vec<(String, String)>) {
        let keys = match self {
            Self::Keys(keys) => keys,
            Self::Held => return ("attribute_exists(#hold)".to_owned(), Vec::new()),
            Self::Locked(_) => {
                let has: Vec<_> = self.names().iter().map(|(name, _)| format!("attribute_exists({name})")).collect();
                return (has.join(" OR "), Vec::new());
            }
        };
        let mut filter = String::from("begins_with(#pk, :digest)");
        let mut values = vec![(":digest".to_owned(), partition_key::DIGEST.to_owned())];
        for (k, parts) in keys.iter().enumerate() {
            let mut contains = Vec::with_capacity(parts.len());
            for (i, part) in parts.iter().enumerate() {
                contains.push(format!("contains(#pk, :p{k}_{i})"));
                values.push((format!(":p{k}_{i}"), part.clone()));
            }
            filter += &format!(" OR ({})", contains.join(" AND "));
        }
        (filter, values)
    }
}

/// One table, or something with the same semantics.
pub trait Store: Send + Sync + 'static {
    /// The time now as the store would tell it, and whether that is known.
    fn moment(&self) -> Moment;

    /// Who counts.
    fn meter(&self) -> &dyn Meter;

    /// Reads an item, strongly consistent; it is an error if the state of one of `limits` cannot be read.
    fn read(&self, item: &ItemKey, limits: &[&LimitName]) -> impl Future<Output = Result<Option<Item>>> + Send;

    /// Writes an item if the condition holds, atomically.
    fn write(&self, item: &ItemKey, write: &Write) -> impl Future<Output = Result<Written>> + Send;

    /// Writes several items, each once, if all conditions hold, atomically.
    fn transact(&self, writes: &[(&ItemKey, &Write)]) -> impl Future<Output = Result<Transacted>> + Send;

    /// Has an address kept out in front until then, and says whether there was room for it. Where nobody stands in front, there is none.
    fn keep_out(&self, _address: &str, _until: Timestamp) -> impl Future<Output = Result<bool>> + Send {
        async { Ok(false) }
    }
}

/// A DynamoDB table.
#[derive(Debug, Clone)]
pub struct DynamoStore {
    client: Client,
    rest: Arc<Rest>,
    table: String,
    endpoint: String,
    clock: Arc<dyn Clock>,
    offset: Arc<Offset>,
    meter: Arc<dyn Meter>,
}

impl DynamoStore {
    /// Most items that one request reads.
    pub(crate) const MOST_READ: usize = 100;

    /// A store on `table`, reached as `config` says. Retries of the SDK must be off, as [`connect`](crate::connect())
    /// sets them.
    #[must_use]
    pub fn new(config: &Connected, table: &str, clock: Arc<dyn Clock>, meter: Arc<dyn Meter>) -> Self {
        Self::on(config, table, clock, Offset::default(), meter)
    }

    /// A store whose `clock` counts as the table's, whatever the table's `Date` headers say. For a manual clock.
    #[must_use]
    pub fn with_trusted_clock(config: &Connected, table: &str, clock: Arc<dyn Clock>, meter: Arc<dyn Meter>) -> Self {
        Self::on(config, table, clock, Offset::trusted(), meter)
    }

    fn on(config: &Connected, table: &str, clock: Arc<dyn Clock>, offset: Offset, meter: Arc<dyn Meter>) -> Self {
        let offset = Arc::new(offset);
        let wire = Wire { clock: clock.clone(), offset: offset.clone(), meter: meter.clone() };
        let client = Client::from_conf(aws_sdk_dynamodb::config::Builder::from(&config.sdk).interceptor(wire).build());
        let (rest, table, endpoint) = (Arc::new(Rest::new()), table.to_owned(), config.endpoint.clone());
        Self { client, rest, table, endpoint, clock, offset, meter }
    }

    /// Opens the connection and learns the clock offset before the first decision: one read of a key that nobody has.
    ///
    /// # Errors
    ///
    /// Whatever keeps the table from being read; the store stays usable.
    pub async fn warm_up(&self) -> Result<()> {
        self.get("1/warm-up").await.map(|_| ())
    }

    /// The raw attributes of an item, strongly consistent.
    ///
    /// # Errors
    ///
    /// Whatever keeps the table from being read.
    #[doc(hidden)]
    pub async fn attributes(&self, item: &ItemKey) -> Result<Option<Attributes>> {
        self.get(&partition_key::of(item)).await
    }

    /// A page of the whole table, strongly consistent: `pk`, hold and expiry of the items that are sought, and their locks if
    /// these are; and where the next page starts.
    pub(crate) async fn scan(
        &self,
        sought: &Sought,
        start: Option<Attributes>,
    ) -> Result<(Vec<Attributes>, Option<Attributes>)> {
        let mut request = self
            .client()
            .await
            .scan()
            .table_name(&self.table)
            .consistent_read(true)
            .projection_expression(
                sought.names().iter().fold("#pk, #hold, #x".to_owned(), |all, (p, _)| all + ", " + p),
            )
            .expression_attribute_names("#pk", partition_key::ATTRIBUTE)
            .expression_attribute_names("#hold", attributes::HOLD)
            .expression_attribute_names("#x", attributes::EXPIRES_AT)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .set_exclusive_start_key(start);
        let (filter, values) = sought.filter();
        for (name, value) in values {
            request = request.expression_attribute_values(name, AttributeValue::S(value));
        }
        for (name, attribute) in sought.names() {
            request = request.expression_attribute_names(name, attribute);
        }
        let output = request
            .filter_expression(filter)
            .send()
            .await
            .map_err(|e| error::classify(&e, self.context("dynamodb:Scan")))?;
        self.meter.record(Event::ReadUnits(units(output.consumed_capacity())));
        Ok((output.items.unwrap_or_default(), output.last_evaluated_key))
    }

    /// Deletes the item of `pk` if the condition holds, atomically: one request, which is never sent again.
    pub(crate) async fn delete(&self, pk: &str, rendered: Expressions) -> Result<Deleted> {
        let Expressions { condition, names, values, .. } = rendered;
        let request = self.client().await.delete_item().table_name(&self.table);
        let request = request
            .key(partition_key::ATTRIBUTE, AttributeValue::S(pk.to_owned()))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values).filter(|values| !values.is_empty()))
            .return_values(ReturnValue::AllOld)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        match request.send().await {
            Ok(output) => {
                self.meter.record(Event::WriteUnits(units(output.consumed_capacity())));
                Ok(Deleted::Gone { existed: output.attributes.is_some() })
            }
            Err(failed) => match failed.as_service_error() {
                Some(DeleteItemError::ConditionalCheckFailedException(refused)) => {
                    self.meter.record(Event::WriteUnits(attributes::write_units(refused.item.as_ref())));
                    Ok(Deleted::Refused(refused.item.clone().unwrap_or_default()))
                }
                _ => Err(error::classify(&failed, self.context("dynamodb:DeleteItem"))),
            },
        }
    }

    /// The table's name.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The client for a request that goes out now.
    async fn client(&self) -> &Client {
        self.rest.end().await;
        &self.client
    }

    fn context(&self, action: &'static str) -> Context<'_> {
        Context { action, table: &self.table, endpoint: &self.endpoint }
    }

    /// The attributes of the item of `pk`, strongly consistent.
    pub(crate) async fn get(&self, pk: &str) -> Result<Option<Attributes>> {
        let request = self.client().await.get_item().table_name(&self.table).consistent_read(true);
        let request = request.key(partition_key::ATTRIBUTE, AttributeValue::S(pk.to_owned()));
        let request = request.return_consumed_capacity(ReturnConsumedCapacity::Total);
        let output = request.send().await;
        let output = output.map_err(|e| error::classify(&e, self.context("dynamodb:GetItem")))?;
        self.meter.record(Event::ReadUnits(units(output.consumed_capacity())));
        Ok(output.item)
    }

    /// Those items of `pks`, at most [`Self::MOST_READ`], that exist, eventually consistent, by their `pk`; and the `pk`s that the table had no
    /// capacity for.
    pub(crate) async fn get_all(&self, pks: Vec<String>) -> Result<(HashMap<String, Attributes>, Vec<String>)> {
        let key = |pk| HashMap::from([(partition_key::ATTRIBUTE.to_owned(), AttributeValue::S(pk))]);
        let keys = KeysAndAttributes::builder().set_keys(Some(pks.into_iter().map(key).collect())).build();
        let keys = keys.map_err(|e| Error::Refused { action: "dynamodb:BatchGetItem", message: e.to_string() })?;
        let request = self.client().await.batch_get_item().request_items(&self.table, keys);
        let output = request.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
        let output = output.map_err(|e| error::classify(&e, self.context("dynamodb:BatchGetItem")))?;
        output.consumed_capacity().iter().for_each(|used| self.meter.record(Event::ReadUnits(units(Some(used)))));
        let pk = |item: &Attributes| Some(item.get(partition_key::ATTRIBUTE)?.as_s().ok()?.clone());
        let found = output.responses.unwrap_or_default().remove(&self.table).unwrap_or_default();
        let left = output.unprocessed_keys.unwrap_or_default().remove(&self.table);
        let left = left.iter().flat_map(KeysAndAttributes::keys).filter_map(pk).collect();
        Ok((found.into_iter().filter_map(|item| Some((pk(&item)?, item))).collect(), left))
    }

    /// What a cancelled transaction says, write by write.
    async fn cancelled(&self, reasons: &[CancellationReason], writes: &[(String, Expressions)]) -> Result<Together> {
        let code = |reason: &CancellationReason| reason.code().unwrap_or_default().to_owned();
        let is_refusal = |reason: &&CancellationReason| code(reason) == "ConditionalCheckFailed";
        if !reasons.iter().any(|reason| is_refusal(&reason)) {
            let causes: Vec<_> = reasons.iter().map(code).filter(|code| !code.is_empty() && code != "None").collect();
            // Of several, the one that says that others were in the way: that is no outage, whatever else there was.
            let conflict = causes.iter().find(|code| *code == error::CONFLICT);
            let cause = conflict.or(causes.first()).cloned().unwrap_or_default();
            let context = self.context("dynamodb:UpdateItem");
            return Err(error::by_cancellation(&cause, context));
        }
        let mut refused = Vec::with_capacity(writes.len());
        for (reason, (pk, _)) in reasons.iter().zip(writes) {
            self.meter.record(Event::WriteUnits(2 * attributes::write_units(reason.item.as_ref())));
            refused.push(match Some(reason).filter(is_refusal) {
                Some(reason) => Some(self.found(pk, reason.item.clone()).await?),
                None => None,
            });
        }
        Ok(Together::Refused(refused))
    }

    /// The item that a refused write found, if the refusal brings it or the table has it. Without it, there was none; or this is
    /// a server that does not know `ReturnValuesOnConditionCheckFailure`, which DynamoDB has had for updates since 2023 and
    /// emulators got later or not at all.
    async fn found(&self, pk: &str, told: Option<Attributes>) -> Result<Option<Attributes>> {
        match told {
            Some(found) => Ok(Some(found)),
            None => self.get(pk).await,
        }
    }

    /// Writes the item of `pk` if the condition holds, atomically: one request, which is never sent again.
    ///
    /// # Errors
    ///
    /// Whatever keeps the table from answering; [`Error::fate`] says whether the write may have been applied.
    #[doc(hidden)]
    pub async fn update(&self, pk: &str, rendered: Expressions) -> Result<Updated> {
        let request = self.client().await.update_item().table_name(&self.table);
        let request = request
            .key(partition_key::ATTRIBUTE, AttributeValue::S(pk.to_owned()))
            .condition_expression(rendered.condition)
            .update_expression(rendered.update)
            .set_expression_attribute_names(Some(rendered.names))
            .set_expression_attribute_values(Some(rendered.values).filter(|values| !values.is_empty()))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        match request.send().await {
            Ok(output) => {
                self.meter.record(Event::WriteUnits(units(output.consumed_capacity())));
                output.attributes.map(Updated::Applied).ok_or(Error::Ambiguous("the reply has no item".to_owned()))
            }
            Err(failed) if is_refusal(&failed) => self.refused(pk, failed.into_service_error()).await,
            Err(failed) => Err(error::classify(&failed, self.context("dynamodb:UpdateItem"))),
        }
    }

    /// Writes several items by their `pk`, each once, if all conditions hold, atomically: one transaction, which is never sent again.
    ///
    /// # Errors
    ///
    /// As [`DynamoStore::update`].
    pub async fn update_together(&self, writes: &[(String, Expressions)]) -> Result<Together> {
        // What a transaction may do is granted by the actions in it (Developer Guide, "Using IAM with transactions").
        let context = self.context("dynamodb:UpdateItem");
        let mut request =
            self.client().await.transact_write_items().return_consumed_capacity(ReturnConsumedCapacity::Total);
        for (pk, rendered) in writes {
            let update = Update::builder()
                .table_name(&self.table)
                .key(partition_key::ATTRIBUTE, AttributeValue::S(pk.clone()))
                .condition_expression(&rendered.condition)
                .update_expression(&rendered.update)
                .set_expression_attribute_names(Some(rendered.names.clone()))
                .set_expression_attribute_values(Some(rendered.values.clone()).filter(|values| !values.is_empty()))
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                .build();
            let update = update.map_err(|e| Error::Refused { action: context.action, message: e.to_string() })?;
            request = request.transact_items(TransactWriteItem::builder().update(update).build());
        }
        match request.send().await {
            Ok(output) => {
                let consumed = output.consumed_capacity().iter().map(|consumed| units(Some(consumed))).sum();
                self.meter.record(Event::WriteUnits(consumed));
                Ok(Together::Applied)
            }
            Err(failed) => match failed.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                    self.cancelled(cancelled.cancellation_reasons(), writes).await
                }
                _ => Err(error::classify(&failed, context)),
            },
        }
    }

    async fn refused(&self, pk: &str, error: UpdateItemError) -> Result<Updated> {
        let found = match error {
            UpdateItemError::ConditionalCheckFailedException(failed) => failed.item,
            other => return Err(Error::Ambiguous(other.to_string())),
        };
        let found = self.found(pk, found).await?;
        self.meter.record(Event::WriteUnits(attributes::write_units(found.as_ref())));
        Ok(Updated::Refused(found))
    }
}

fn charged(write: &Write) -> Vec<&LimitName> {
    write.names().collect()
}

/// Capacity units of a reply, rounded up; a reply that does not say counts as 1.
fn units(consumed: Option<&ConsumedCapacity>) -> u64 {
    let units = consumed.and_then(ConsumedCapacity::capacity_units).unwrap_or(1.0).ceil();
    // An item is at most 400 KB, so units are small and positive.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let units = units as u64;
    units
}

impl Store for DynamoStore {
    fn moment(&self) -> Moment {
        Moment { now: self.offset.correct(self.clock.now()), clock_agrees: self.offset.agrees() }
    }

    fn meter(&self) -> &dyn Meter {
        &*self.meter
    }

    async fn read(&self, item: &ItemKey, limits: &[&LimitName]) -> Result<Option<Item>> {
        Ok(self.attributes(item).await?.map(|found| attributes::to_item(&found, limits)).transpose()?)
    }

    async fn write(&self, item: &ItemKey, write: &Write) -> Result<Written> {
        let limits = charged(write);
        match self.update(&partition_key::of(item), expression::render(write)).await? {
            // The write was applied: whatever is wrong with the reply, it must not look as if it was not.
            Updated::Applied(found) => match attributes::to_item(&found, &limits) {
                Ok(item) => Ok(Written::Applied(item)),
                Err(error) => Err(Error::Ambiguous(error.to_string())),
            },
            Updated::Refused(found) => {
                Ok(Written::Refused(found.as_ref().map(|found| attributes::to_item(found, &limits)).transpose()?))
            }
        }
    }

    async fn keep_out(&self, address: &str, until: Timestamp) -> Result<bool> {
        let (pk, rendered) = kept_out::adding(address, until, self.moment().now);
        Ok(matches!(self.update(&pk, rendered).await?, Updated::Applied(_)))
    }

    async fn transact(&self, writes: &[(&ItemKey, &Write)]) -> Result<Transacted> {
        let rendered: Vec<_> =
            writes.iter().map(|(item, write)| (partition_key::of(item), expression::render(write))).collect();
        let found = match self.update_together(&rendered).await? {
            Together::Applied => return Ok(Transacted::Applied),
            Together::Refused(found) => found,
        };
        let item = |(found, (_, write)): (Option<Option<Attributes>>, &(&ItemKey, &Write))| {
            let to_item = |found: Attributes| attributes::to_item(&found, &charged(write));
            found.map(|found| found.map(to_item).transpose()).transpose()
        };
        let refused = found.into_iter().zip(writes).map(item).collect::<tollgate_core::Result<Vec<_>>>();
        Ok(Transacted::Refused(refused?))
    }
}

fn is_refusal<R>(error: &aws_sdk_dynamodb::error::SdkError<UpdateItemError, R>) -> bool {
    error.as_service_error().is_some_and(UpdateItemError::is_conditional_check_failed_exception)
}
