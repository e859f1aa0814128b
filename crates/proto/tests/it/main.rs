//! Machines together in virtual time, on the network of `aerostat-testing`, by their public interface alone.

mod clip;
mod keys;
mod lane;
mod pair;
mod tcp;
