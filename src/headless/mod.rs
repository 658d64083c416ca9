//! What scripts see: text, JSONL, summary.
