//! Golden vectors against the decoders: one module per protocol, recordings read through [`recording`].

mod atmarp;
mod ilmi;
mod lane;
mod mpoa;
mod q2931;
mod qos;
mod recording;
mod sscop;
mod summary;
