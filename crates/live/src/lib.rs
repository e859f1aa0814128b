//! Aerostat: labs in real time, the only crate that touches the operating system.
