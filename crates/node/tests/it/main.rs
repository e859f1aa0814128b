//! Switches and signalling by their public interface, in the networks of `aerostat-testing`.

mod signalling;
mod switch;
