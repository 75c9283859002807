//! Rate limiting, OTP protection and MFA step-up on one DynamoDB table: the one crate a user adds.
