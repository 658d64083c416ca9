//! What happens: spawning, process trees, timers, scheduling.
