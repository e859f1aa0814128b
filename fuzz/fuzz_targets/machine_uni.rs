//! See [`aerostat_fuzz::uni`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aerostat_fuzz::uni::run(data));
