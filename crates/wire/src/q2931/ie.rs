//! Information elements as values.

/// Class of a restart. Source: Q.2931 §4.5.20.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartClass {
    /// One virtual channel, named by a connection identifier.
    Channel = 0,
    /// All virtual channels of one virtual path, named by a connection identifier.
    Path = 1,
    /// All virtual channels of this interface.
    All = 2,
}
