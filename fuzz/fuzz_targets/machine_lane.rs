//! See [`aerostat_fuzz::lane`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aerostat_fuzz::lane::run(data));
