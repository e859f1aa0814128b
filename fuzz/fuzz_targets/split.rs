//! See [`aerostat_fuzz::split`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aerostat_fuzz::split::run(data));
