//! See [`aerostat_fuzz::nhrp`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aerostat_fuzz::nhrp::run(data));
