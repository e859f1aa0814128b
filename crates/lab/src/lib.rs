//! Aerostat: the lab file.
