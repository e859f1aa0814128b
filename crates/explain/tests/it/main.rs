//! Captures that are made from recordings and by hand: clean ones name nothing, and each seeded fault names its rule.

mod captures;
mod cases;
mod clean;
mod dmvpn;
mod frr;
mod hostile;
mod links;
