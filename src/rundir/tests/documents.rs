//! Each document is checked field by field against the tables of run-directory 2.1, 2.1.1 and 5.
