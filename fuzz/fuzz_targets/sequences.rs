//! See [`aerostat_fuzz::sequences`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aerostat_fuzz::sequences(data));
