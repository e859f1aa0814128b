//! See [`aerostat_fuzz::sscop`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aerostat_fuzz::sscop::run(data));
