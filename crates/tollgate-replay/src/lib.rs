//! What would this policy have done to yesterday's traffic.
