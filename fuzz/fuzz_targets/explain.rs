//! See [`aerostat_fuzz::explain`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aerostat_fuzz::explain::run(data));
