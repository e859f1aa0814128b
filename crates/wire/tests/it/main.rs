//! Golden vectors against the decoders: one module per protocol, recordings read through `aerostat_testing::recording`.

mod atmarp;
mod ilmi;
mod lane;
mod mpoa;
mod q2931;
mod qos;
mod sscop;
mod summary;
