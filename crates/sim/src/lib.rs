//! Aerostat: labs in virtual time.
