//! What people see: the full-screen interface.
