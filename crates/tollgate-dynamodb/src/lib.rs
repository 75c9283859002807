//! How a decision is remembered: each algorithm as conditional writes on a DynamoDB table.
