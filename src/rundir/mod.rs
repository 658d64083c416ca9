//! What is on disk: the files of a run directory.
