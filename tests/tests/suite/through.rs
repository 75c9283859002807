//! Stores that stand in front of another: what they do not say themselves goes through to it.

/// Methods of [`Store`](tollgate::Store) that go through to the store in a field: `through!(memory: moment, meter, read, transact);`
macro_rules! through {
    ($to:tt: $($method:ident),+) => { $($crate::through::through!(@$method $to);)+ };
    (@moment $to:tt) => {
        fn moment(&self) -> tollgate_core::take::Moment {
            self.$to.moment()
        }
    };
    (@meter $to:tt) => {
        fn meter(&self) -> &dyn tollgate::Meter {
            self.$to.meter()
        }
    };
    (@read $to:tt) => {
        async fn read(
            &self,
            item: &tollgate_core::ItemKey,
            limits: &[&tollgate_core::LimitName],
        ) -> tollgate_dynamodb::Result<Option<tollgate_core::Item>> {
            self.$to.read(item, limits).await
        }
    };
    (@write $to:tt) => {
        async fn write(
            &self,
            item: &tollgate_core::ItemKey,
            write: &tollgate_core::Write,
        ) -> tollgate_dynamodb::Result<tollgate_dynamodb::Written> {
            self.$to.write(item, write).await
        }
    };
    (@transact $to:tt) => {
        async fn transact(
            &self,
            writes: &[(&tollgate_core::ItemKey, &tollgate_core::Write)],
        ) -> tollgate_dynamodb::Result<tollgate_dynamodb::Transacted> {
            self.$to.transact(writes).await
        }
    };
}

pub(crate) use through;
