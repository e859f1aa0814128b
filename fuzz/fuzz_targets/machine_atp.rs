//! See [`aerostat_fuzz::atp`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aerostat_fuzz::atp::run(data));
