//! The policy file: parse, validate, match a request to the limits it is charged on.
