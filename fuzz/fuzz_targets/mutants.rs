//! See [`aerostat_fuzz::mutants`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aerostat_fuzz::mutants::run(data));
