//! What the user set: configuration layers and trust.
