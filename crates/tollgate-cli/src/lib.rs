//! The tollgate command.
