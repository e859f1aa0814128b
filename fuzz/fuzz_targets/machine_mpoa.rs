//! See [`aerostat_fuzz::mpoa`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aerostat_fuzz::mpoa::run(data));
