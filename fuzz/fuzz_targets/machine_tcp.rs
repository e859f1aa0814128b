//! See [`aerostat_fuzz::tcp`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aerostat_fuzz::tcp::run(data));
