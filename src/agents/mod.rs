//! What agents say: line framing and one adapter per CLI.
